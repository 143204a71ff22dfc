// The lines of a text: found once, then looked up by offset or by number.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {

/// Borrows the text.
class LineTable {
 public:
  explicit LineTable(std::string_view text);

  /// The place of bytes [begin, end); of several lines, their first byte.
  Span span(std::size_t begin, std::size_t end) const;

  /// Line `number` (from 1), without its end; empty if there is no such line.
  std::string_view line(int number) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_{0};
};

}  // namespace lacuna
