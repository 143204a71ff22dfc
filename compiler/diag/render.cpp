// The terminal form of diagnostics: position, message, source line, caret, notes, helps.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/diag/line_table.hpp"
#include "compiler/diag/printable.hpp"

namespace lacuna {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kPerf:
      return "perf";
    case Severity::kNote:
      return "note";
  }
  return "error";
}

namespace {

constexpr std::size_t kLongestLine = 100;  ///< longer source lines are cut around the caret

struct Style {
  std::string_view error, warning, note, help, bold, caret, off;
};
constexpr Style kPlain{};
constexpr Style kColored{"\x1b[1;31m", "\x1b[1;35m", "\x1b[1;36m", "\x1b[1;32m",
                         "\x1b[1m",    "\x1b[1;32m", "\x1b[0m"};

std::string_view color_of(Severity severity, const Style& style) {
  switch (severity) {
    case Severity::kError:
      return style.error;
    case Severity::kWarning:
    case Severity::kPerf:
      return style.warning;
    case Severity::kNote:
      return style.note;
  }
  return style.error;
}

constexpr int kMostContinuations = 3;  ///< bytes of a character besides its first

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// The part of a source line to show, and the bytes of it to underline.
struct Excerpt {
  std::string text;
  std::size_t begin = 0, end = 0;
};

Excerpt cut(std::string_view line, Span span) {
  const auto begin = std::min(line.size(), static_cast<std::size_t>(std::max(0, span.column - 1)));
  const auto end =
      std::min(line.size(), begin + static_cast<std::size_t>(std::max(1, span.length)));
  std::size_t first = 0;
  if (line.size() > kLongestLine && begin > kLongestLine / 2) first = begin - kLongestLine / 2;
  std::size_t last = std::min(line.size(), first + kLongestLine);
  // Whole characters; of bytes that are no UTF-8 any number may look like the rest of one.
  for (int i = 0; i < kMostContinuations && first > 0 && is_continuation(line[first]); ++i) --first;
  for (int i = 0; i < kMostContinuations && last < line.size() && is_continuation(line[last]); ++i)
    ++last;
  Excerpt excerpt{printable(std::string(line.substr(first, last - first))), begin - first,
                  std::clamp(end, begin, last) - first};
  if (first > 0) {
    excerpt.text.insert(0, "...");
    excerpt.begin += 3;
    excerpt.end += 3;
  }
  if (last < line.size()) excerpt.text += "...";
  return excerpt;
}

/// Spaces (tabs where the line has tabs) up to the caret, then ^ and one ~ for each further
/// character.
std::string caret_line(const Excerpt& excerpt) {
  std::string line;
  for (std::size_t i = 0; i < excerpt.begin; ++i)
    if (!is_continuation(excerpt.text[i])) line += excerpt.text[i] == '\t' ? '\t' : ' ';
  line += '^';
  for (std::size_t i = excerpt.begin + 1; i < excerpt.end; ++i)
    if (!is_continuation(excerpt.text[i])) line += '~';
  return line;
}

void render_one(const Diagnostic& d, const std::string& path, std::string_view line,
                const Style& style, std::string& out) {
  out += style.bold;
  out += printable(path);
  if (d.span.line > 0)
    out += ":" + std::to_string(d.span.line) + ":" + std::to_string(d.span.column);
  out += ": ";
  out += style.off;
  out.append(color_of(d.severity, style)).append(name_of(d.severity)).append(": ");
  out.append(style.off).append(style.bold).append(printable(d.message));
  out.append(" [").append(code_name(d.code)).append("]").append(style.off).append("\n");
  if (!line.empty()) {
    const Excerpt excerpt = cut(line, d.span);
    out += excerpt.text + "\n";
    out.append(style.caret).append(caret_line(excerpt)).append(style.off).append("\n");
  }
  for (const std::string& note : d.notes)
    out.append(style.note).append("note: ").append(style.off).append(printable(note)).append("\n");
  for (const std::string& help : d.helps)
    out.append(style.help).append("help: ").append(style.off).append(printable(help)).append("\n");
}

}  // namespace

std::string render(const Diagnostics& diagnostics, const SourceText& source, bool color) {
  std::string out;
  std::optional<LineTable> lines;  // of texts that some diagnostic leads to
  for (const Diagnostic& d : diagnostics.items) {
    if (d.span.line > 0 && !lines) lines.emplace(source.text);
    const std::string_view line = d.span.line > 0 ? lines->line(d.span.line) : "";
    render_one(d, source.path, line, color ? kColored : kPlain, out);
  }
  return out;
}

}  // namespace lacuna
