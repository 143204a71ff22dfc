// Session: one invocation of the command. Data goes to stdout, everything else to stderr; with
// --json the verb's document goes to stdout, diagnostics included. Every verb starts here.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"

namespace CLI {
class App;
}

namespace lacuna::tools {

enum class ExitCode : int {
  kOk = 0,
  kInput = 1,        ///< an error in the input, diagnosed
  kUsage = 2,        ///< unknown verb, flag or value
  kEnvironment = 3,  ///< no driver, NVRTC, device or plugin
  kNumerics = 4,     ///< a numerical check failed
  kInternal = 70,
  kInterrupted = 130,  ///< by Ctrl-C; what was found is kept
  kTerminated = 143    ///< the same by SIGTERM
};

/// Of a verb that a signal has stopped.
ExitCode exit_code_of_signal(int signal);

struct Session {
  bool json = false;
  std::string color = "auto";                                          ///< auto, always, never
  nlohmann::ordered_json document = nlohmann::ordered_json::object();  ///< what --json prints
  nlohmann::ordered_json diagnostics = nlohmann::ordered_json::array();
  ExitCode exit_code = ExitCode::kOk;
  int output_error = 0;  ///< errno of the first write to stdout that failed

  /// Renders diagnostics to stderr, or keeps them for the JSON document. Errors set kInput, unless
  /// the verb has failed already.
  void report(const Diagnostics& found, const SourceText& source);

  /// A failure that has been rendered elsewhere (lacuna_last_error), with its JSON form.
  void report_rendered(ExitCode code, std::string_view text, const std::string& json_text);

  /// A failure in one sentence.
  void fail(ExitCode code, std::string_view message);

  /// One line for the reader on stderr: what was chosen, what is missing.
  void note(std::string_view message) const;
  /// The same of what each of several specs would say again.
  void note_once(std::string_view message) const;

  /// Writes text for people to stdout; with --json the document takes its place. What would drive a
  /// terminal is replaced, but not ends of lines: names are made printable before.
  void print(std::string_view text);

  /// The same for data: only on a terminal is anything replaced.
  void print_data(std::string_view data);

  /// The one way to stdout, also with --json: a write that fails is told by finish().
  void write_stdout(std::string_view text);

  bool color_stdout() const;
  bool color_stderr() const;

 private:
  mutable std::set<std::string, std::less<>> told_;  ///< by note_once
};

/// Adds --json and --color, which every verb has.
void add_common_options(CLI::App& verb, Session& session);

/// Prints the JSON document if asked for, and flushes stdout; an output that is not whole is an
/// error. Returns the exit status.
int finish(Session& session);

}  // namespace lacuna::tools
