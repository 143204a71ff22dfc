// The `lacuna` command. The first word is the verb; each verb is one file.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/diag/printable.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/io/interrupts.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

constexpr const char* kDescription =
    R"(Sparse attention from JSON, compiled at run time.

Examples:
  lacuna run specs/bsfa.json                     run it on the shipped sample, GPU or CPU
  lacuna check my_spec.json                      every error, with its place and the way out
  lacuna explain specs/bsfa.json --arch sm_90a   every decision and where it came from
  lacuna emit --form cuda specs/bsfa.json        any stop on the way from JSON to machine code
  lacuna build specs/*.json --arch sm_80,sm_90a -o kernels
  lacuna doctor                                  what this machine offers
  lacuna help run                                the flags of a verb)";

/// The library's help, with one line for each verb in the list of verbs.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(28); }
  std::string make_description(const CLI::App* app) const override {
    return app->get_description() + "\n\n";
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    const std::string description = verb->get_description();
    std::ostringstream line;
    CLI::detail::format_help(line, verb->get_name(), description.substr(0, description.find('\n')),
                             column_width_);
    return line.str();
  }
};

/// "--jsn" -> " (did you mean --json?)".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_word(word, candidates);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// "--seconds: Value -1 not in range 0.000000 to 17976931348...": the numbers as people write them.
std::string range_message(const std::string& text) {
  constexpr std::string_view kValue = ": Value ", kRange = " not in range ", kTo = " to ";
  const std::size_t value = text.find(kValue), range = text.find(kRange),
                    to = text.find(kTo, range);
  if (value == std::string::npos || range == std::string::npos || to == std::string::npos)
    return "";
  const std::string least = text.substr(range + kRange.size(), to - range - kRange.size());
  const std::string most = text.substr(to + kTo.size());
  const std::string got = text.substr(value + kValue.size(), range - value - kValue.size());
  const auto plain = [](const std::string& number) {
    const std::size_t point = number.find('.');
    if (point == std::string::npos) return number;
    const std::size_t last = number.find_last_not_of("0.");
    return last < point || last == std::string::npos ? number.substr(0, point)
                                                     : number.substr(0, last + 1);
  };
  constexpr std::size_t kLongestNumber = 30;
  const bool is_open = most.size() > kLongestNumber;
  return text.substr(0, value) + ": expected a number " +
         (is_open ? "above " + plain(least) : "from " + plain(least) + " to " + plain(most)) +
         ", got " + got;
}

/// The sentence for a command line that could not be understood.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& verb = chosen.empty() ? app : *chosen.front();
  for (const std::string& word : verb.remaining(true)) {
    if (&verb == &app && word.front() != '-') {
      return "unknown verb \"" + word + "\"" + suggestion(word, verb_names(app));
    }
    const std::string flag = word.substr(0, word.find('='));
    if (word.front() == '-') {
      return "unknown flag \"" + flag + "\"" + suggestion(flag, flag_names(verb));
    }
    const std::vector<std::string> parts = verb_names(verb);  // of `cache`, of `viz`
    if (parts.empty() || !verb.get_subcommands().empty())
      return "unexpected argument \"" + word + "\"";
    return "expected one of " + join(parts) + ", got \"" + word + "\"" + suggestion(word, parts);
  }
  // "Could not convert: --tolerance = 5%"
  constexpr std::string_view kNoNumber = "Could not convert: ", kIs = " = ";
  std::string text = error.what();
  if (text.starts_with("A subcommand is required"))
    return "expected one of " + join(verb_names(verb));
  if (std::string range = range_message(text); !range.empty()) return range;
  const std::size_t is = text.find(kIs);
  // "--threads: At Most 1 required but received 2"
  const std::size_t most = text.find(": At Most 1 required");
  if (most != std::string::npos) return text.substr(0, most) + " is written more than once";
  if (!text.starts_with(kNoNumber) || is == std::string::npos) return text;
  return text.substr(kNoNumber.size(), is - kNoNumber.size()) + ": expected a number, got \"" +
         text.substr(is + kIs.size()) + "\"";
}

/// A script that asked for JSON reads what is wrong there, too.
int report_usage(const CLI::App& app, const CLI::ParseError& error, Session& session,
                 std::span<const char* const> words) {
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "lacuna" : "lacuna " + chosen.front()->get_name();
  const auto is_json = [](const char* word) { return std::string_view(word) == "--json"; };
  if (std::ranges::any_of(words, is_json)) {
    session.json = true;
    session.fail(ExitCode::kUsage, usage_message(app, error));
    return finish(session);
  }
  std::fprintf(stderr, "%s: error: %s\nTry: %s --help\n", command.c_str(),
               printable(usage_message(app, error)).c_str(), command.c_str());
  return static_cast<int>(ExitCode::kUsage);
}

/// What is said must be something: a variable of a shell that is not set would else drop an output.
void refuse_empty_values(CLI::App& app) {
  const auto is_something = [](const std::string& word) -> std::string {
    return word.empty() ? "expected a value, got \"\"" : "";
  };
  const auto is_number = [](const std::string& word) -> std::string {
    return std::isnan(std::strtod(word.c_str(), nullptr))
               ? "expected a number, got \"" + word + "\""
               : "";
  };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_size_max() > 0) option->check(is_something);
    if (option->get_type_name().starts_with("X")) option->check(is_number);
  }
  for (CLI::App* verb : app.get_subcommands(nullptr)) refuse_empty_values(*verb);
}

/// `help VERB` as `VERB --help`, and `help` as `--help`. A verb that is none keeps its error.
std::vector<const char*> with_help_as_flag(CLI::App& app, std::span<char* const> words) {
  std::vector<const char*> read(words.begin(), words.end());
  if (read.size() < 2 || std::string_view(read[1]) != "help") return read;
  read.erase(read.begin() + 1);
  const auto is_asked_about = [&](const CLI::App* verb) { return verb->get_name() == read[1]; };
  if (read.size() < 2 || std::ranges::any_of(app.get_subcommands(nullptr), is_asked_about))
    read.push_back("--help");
  return read;
}

int run(std::span<char* const> given) {
  Session session;
  CLI::App app(kDescription, "lacuna");
  app.set_version_flag("--version", std::string(LACUNA_VERSION));
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  for (const auto add : {add_run, add_check, add_explain, add_emit, add_build, add_bench, add_tune,
                         add_calibrate, add_viz, add_list, add_cache, add_doctor}) {
    add(app, session);
  }
  for (CLI::App* verb : app.get_subcommands(nullptr)) add_common_options(*verb, session);
  refuse_empty_values(app);
  const std::vector<const char*> words = with_help_as_flag(app, given);
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    app.exit(help_or_version, text, text);
    session.write_stdout(text.str());
    session.json = false;
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, session, words);
  }
  return finish(session);
}

}  // namespace
}  // namespace lacuna::tools

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of its write
  lacuna::tools::start_waiting_for_interrupts();
  try {
    return lacuna::tools::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::bad_alloc&) {
    std::fputs("lacuna: error: out of memory\n", stderr);
    return static_cast<int>(lacuna::tools::ExitCode::kEnvironment);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lacuna: internal error: %s\n", lacuna::printable(error.what()).c_str());
    return static_cast<int>(lacuna::tools::ExitCode::kInternal);
  }
}
