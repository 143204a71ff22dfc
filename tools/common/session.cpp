#include "tools/common/session.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compiler/diag/printable.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

/// Nobody could be told of a stderr that fails.
void write_stderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

/// Nothing but lines and tabs, and on a terminal with color the marks of table.hpp.
std::string for_people(std::string_view text, bool color) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.size();
    std::string_view mark;
    for (const std::string& each : {kBold, kNotBold}) {
      const std::size_t at = color ? text.find(each, begin) : std::string_view::npos;
      if (at >= end) continue;
      end = at;
      mark = each == kBold ? kBold : kNotBold;
    }
    out += printable_lines(std::string(text.substr(begin, end - begin)));
    out += mark;
    begin = end + mark.size();
  }
  return out;
}

bool wants_color(const Session& session, int descriptor) {
  if (session.color != "auto") return session.color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return ::isatty(descriptor) == 1;
}

}  // namespace

ExitCode exit_code_of_signal(int signal) {
  return signal == SIGTERM ? ExitCode::kTerminated : ExitCode::kInterrupted;
}

void Session::report(const Diagnostics& found, const SourceText& source) {
  if (found.has_errors() && exit_code == ExitCode::kOk) exit_code = ExitCode::kInput;
  if (!json) {
    write_stderr(render(found, source, color_stderr()));
    return;
  }
  const auto items = nlohmann::ordered_json::parse(render_json(found, source));
  for (const auto& item : items["diagnostics"]) diagnostics.push_back(item);
}

void Session::report_rendered(ExitCode code, std::string_view text, const std::string& json_text) {
  exit_code = code;
  if (!json) {
    write_stderr(printable_lines(std::string(text)));
    if (!text.empty() && text.back() != '\n') write_stderr("\n");
    return;
  }
  const auto items = nlohmann::ordered_json::parse(json_text, nullptr, false);
  if (items.is_object() && items.contains("diagnostics")) {
    for (const auto& item : items["diagnostics"]) diagnostics.push_back(item);
  } else {
    diagnostics.push_back({{"severity", "error"}, {"message", text}});
  }
}

void Session::fail(ExitCode code, std::string_view message) {
  exit_code = code;
  if (json) {
    diagnostics.push_back({{"severity", "error"}, {"message", message}});
  } else {
    write_stderr("lacuna: error: " + printable(std::string(message)) + "\n");
  }
}

void Session::note(std::string_view message) const {
  write_stderr("lacuna: " + printable(std::string(message)) + "\n");
}

void Session::note_once(std::string_view message) const {
  if (told_.emplace(message).second) note(message);
}

void Session::print(std::string_view text) {
  if (!json) write_stdout(for_people(text, color_stdout()));
}

void Session::print_data(std::string_view data) {
  if (::isatty(STDOUT_FILENO) == 1)
    print(data);
  else if (!json)
    write_stdout(data);
}

void Session::write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() || output_error != 0) return;
  output_error = errno;
}

bool Session::color_stdout() const { return wants_color(*this, STDOUT_FILENO); }
bool Session::color_stderr() const { return wants_color(*this, STDERR_FILENO); }

void add_common_options(CLI::App& verb, Session& session) {
  verb.add_flag("--json", session.json, "Print one JSON document instead of text");
  verb.add_option("--color", session.color,
                  "Color: auto (a terminal without NO_COLOR), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

int finish(Session& session) {
  if (session.json) {
    nlohmann::ordered_json document = {{"version", 1}};
    document.update(session.document);
    document["diagnostics"] = session.diagnostics;
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    session.write_stdout(document.dump(2, ' ', true, kReplace) + "\n");
  }
  // What is still in the buffer fails here.
  if (std::fflush(stdout) != 0 && session.output_error == 0) session.output_error = errno;
  if (session.output_error != 0) {
    Diagnostics diagnostics;
    diagnostics.add(
        {.code = Code::kFileUnwritable,
         .message = std::string("cannot be written: ") + std::strerror(session.output_error)});
    write_stderr(render(diagnostics, {"standard output", ""}, session.color_stderr()));
    if (session.exit_code == ExitCode::kOk) session.exit_code = ExitCode::kInput;
  }
  return static_cast<int>(session.exit_code);
}

}  // namespace lacuna::tools
