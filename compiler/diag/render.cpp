// The terminal form of diagnostics: position, message, source line, caret, notes, helps.
#include <algorithm>
#include <cstddef>

#include "compiler/diag/diagnostic.hpp"

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

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// A text from elsewhere must not drive the terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = '?';
  return text;
}

/// Line `number` (from 1) of a text, without its end; empty if there is no such line.
std::string_view line_of(std::string_view text, int number) {
  for (int line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

/// The part of a source line to show, and the bytes of it to underline.
struct Excerpt {
  std::string text;
  std::size_t begin = 0, end = 0;
};

Excerpt cut(std::string_view line, Span span) {
  Excerpt excerpt;
  excerpt.begin = std::min(line.size(), static_cast<std::size_t>(std::max(0, span.column - 1)));
  excerpt.end =
      std::min(line.size(), excerpt.begin + static_cast<std::size_t>(std::max(1, span.length)));
  std::size_t first = 0;
  if (line.size() > kLongestLine && excerpt.begin > kLongestLine / 2)
    first = excerpt.begin - kLongestLine / 2;
  while (first > 0 && is_continuation(line[first])) --first;
  std::size_t last = std::min(line.size(), first + kLongestLine);
  while (last < line.size() && is_continuation(line[last])) ++last;
  excerpt.text = line.substr(first, last - first);
  excerpt.begin -= first;
  excerpt.end = std::clamp(excerpt.end - first, excerpt.begin, excerpt.text.size());
  if (first > 0) {
    excerpt.text.insert(0, "...");
    excerpt.begin += 3;
    excerpt.end += 3;
  }
  if (last < line.size()) excerpt.text += "...";
  excerpt.text = printable(excerpt.text);
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

void render_one(const Diagnostic& d, const SourceText& source, const Style& style,
                std::string& out) {
  out += style.bold;
  out += printable(source.path);
  if (d.span.line > 0)
    out += ":" + std::to_string(d.span.line) + ":" + std::to_string(d.span.column);
  out += ": ";
  out += style.off;
  out.append(color_of(d.severity, style)).append(name_of(d.severity)).append(": ");
  out.append(style.off).append(style.bold).append(printable(d.message));
  out.append(" [").append(code_name(d.code)).append("]").append(style.off).append("\n");
  const std::string_view line = d.span.line > 0 ? line_of(source.text, d.span.line) : "";
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
  for (const Diagnostic& d : diagnostics.items)
    render_one(d, source, color ? kColored : kPlain, out);
  return out;
}

}  // namespace lacuna
