// Small loops in the words of nvdisasm, and ways to break them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sass/wgmma_order.hpp"

namespace lacuna::sass {

/// One instruction or label a line.
using Lines = std::vector<std::string>;

inline Code code_of(const Lines& lines) {
  std::string text = ".text.kernel:\n";
  for (const std::string& line : lines)
    text += line.starts_with('.') ? line + "\n" : "/*0000*/ " + line + " ;\n";
  return parse_listing(text)[0].code;
}

/// Index of the n-th line, from 0 on, that contains `part`.
inline std::size_t find_line(const Lines& lines, std::string_view part, int n = 0) {
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].find(part) != std::string::npos && n-- == 0) return at;
  }
  ADD_FAILURE() << "no line with " << part;
  return 0;
}

/// `line` moved to right before `before`.
inline Lines moved(Lines lines, std::size_t line, std::size_t before) {
  const std::string text = lines[line];
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(before), text);
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line < before ? line : line + 1));
  return lines;
}
inline Lines with(Lines lines, std::size_t before, const std::string& text) {
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(before), text);
  return lines;
}
inline Lines without(Lines lines, std::size_t line) {
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
  return lines;
}

inline void expect_violation(const Lines& lines, const StepFacts& facts,
                             const std::string& expected) {
  const std::vector<std::string> found = violations(code_of(lines), facts);
  EXPECT_NE(std::ranges::find(found, expected), found.end())
      << "expected: " << expected << "\nfound: " << testing::PrintToString(found);
}

}  // namespace lacuna::sass
