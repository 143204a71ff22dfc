// The built command as a process: arguments in, exit status and both outputs out.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lacuna::tests {

struct CommandResult {
  int status = -1;  ///< exit status; 128 + signal if it died of one
  std::string out, err;
};

/// Runs `lacuna` with its own empty cache directory and no color; `input` is its standard input,
/// `variables` go into its environment, its standard output to the file `output` if one is named.
CommandResult run_lacuna(const std::vector<std::string>& arguments, const std::string& input = "",
                         const std::map<std::string, std::string>& variables = {},
                         const std::string& output = "");

/// The same with a `signal` as soon as the verb asks for signals, or that long after.
CommandResult run_lacuna_and_signal(const std::vector<std::string>& arguments, int signal,
                                    std::chrono::nanoseconds delay = {});

/// The same with a `signal` that long after the command has begun to wait for it.
CommandResult run_lacuna_and_signal_after(std::chrono::nanoseconds delay,
                                          const std::vector<std::string>& arguments, int signal);

/// What --json printed; fails the test if that is not one JSON document of version 1.
nlohmann::json parse_document(const CommandResult& result);

/// What was said without the note about a build that has no CPU compiler.
std::string without_notes(const std::string& text);

/// A directory of this test, removed at its end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;
  /// Names of all files, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_bytes(const std::string& path);

/// The path of a file of the repository.
std::string source_file(const std::string& name);

}  // namespace lacuna::tests
