// Diagnostics: what is wrong, where, why the rule exists, and the nearest legal values.
//
// Values, not exceptions: every phase appends to a Diagnostics and stops at the end of its phase,
// so that one run shows all errors of a file. codes.def is the only list of codes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

enum class Severity : std::uint8_t { kError, kWarning, kPerf, kNote };

enum class Code : std::uint16_t {
#define LACUNA_CODE(name, number, summary) name = (number),
#include "compiler/diag/codes.def"
#undef LACUNA_CODE
};

/// A place in a source text; lines and columns count from 1 (columns in bytes), line 0: no place.
struct Span {
  int line = 0, column = 0, length = 0;
  bool operator==(const Span&) const = default;
};

struct Diagnostic {
  Code code{};
  Severity severity = Severity::kError;
  std::string message{};             ///< one line: field, expected, got
  std::string pointer{};             ///< JSON pointer of the field, if any: "/tile/q"
  Span span{};                       ///< in the file being read, if any
  std::vector<std::string> notes{};  ///< why the rule exists
  std::vector<std::string> helps{};  ///< the way out: nearest legal values
};

struct Diagnostics {
  std::vector<Diagnostic> items;
  Diagnostic& add(Diagnostic d) { return items.emplace_back(std::move(d)); }
  bool has_errors() const;
};

/// "E0203" for Code 203, the one-line summary of codes.def, and what its group is about.
std::string code_name(Code code);
std::string_view code_summary(Code code);

/// Why a code occurs, what raises it, and the way out; of explanations.def.
struct Explanation {
  std::string_view cause, example, cure;
};
Explanation explanation_of(Code code);
std::string_view code_subject(Code code);

/// "error", "warning", "perf", "note".
std::string_view name_of(Severity severity);

/// A text with its name, as shown to the user. The path may be "-" or "<memory>".
struct SourceText {
  std::string path;
  std::string text;
};

/// `path:line:column: error: message [E0203]`, the source line, a caret, notes and helps.
std::string render(const Diagnostics& diagnostics, const SourceText& source, bool color = false);

/// {"diagnostics": [{severity, code, message, path, pointer, line, column, length, notes, helps}]}
std::string render_json(const Diagnostics& diagnostics, const SourceText& source);

/// The candidate nearest to `word` by edit distance, or the one that other systems call so; "" if
/// none is near enough to suggest.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace lacuna
