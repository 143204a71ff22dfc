#include "compiler/diag/line_table.hpp"

#include <algorithm>

namespace lacuna {

LineTable::LineTable(std::string_view text) : text_(text) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', end + 1))
    starts_.push_back(end + 1);
}

Span LineTable::span(std::size_t begin, std::size_t end) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), begin);
  const auto line = next - starts_.begin();
  const std::size_t start = starts_[static_cast<std::size_t>(line - 1)];
  const bool one_line = next == starts_.end() || end <= *next;
  return {static_cast<int>(line), static_cast<int>(begin - start) + 1,
          one_line ? static_cast<int>(end - begin) : 1};
}

std::string_view LineTable::line(int number) const {
  if (number < 1 || static_cast<std::size_t>(number) > starts_.size()) return {};
  const std::size_t start = starts_[static_cast<std::size_t>(number - 1)];
  std::string_view line = text_.substr(start, text_.find('\n', start) - start);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace lacuna
