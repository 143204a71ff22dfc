#include "compiler/spec/table/bands.hpp"

#include <bit>
#include <charconv>

namespace lacuna {
namespace {

/// An element at the begin of `text`, which goes on behind it; -1 if there is none.
int take_element(std::string_view& text) {
  int element = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), element);
  if (error != std::errc{}) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return element;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

/// Standard libraries differ in the type of the width.
int width_of(std::uint32_t steps) { return static_cast<int>(std::bit_width(steps)); }

}  // namespace

std::optional<std::uint32_t> band_steps(std::string_view text) {
  std::uint32_t steps = 0;
  int before = 0;  // the end of the last band
  do {
    const int first = take_element(text);
    if (first < before || !take(text, ':')) return std::nullopt;
    const int end = take_element(text);
    if (end <= first || end > kMostBandDims || first % kBandStep != 0 || end % kBandStep != 0)
      return std::nullopt;
    for (int n = first / kBandStep; n < end / kBandStep; ++n) steps |= std::uint32_t{1} << n;
    before = end;
  } while (take(text, ','));
  return text.empty() ? std::optional(steps) : std::nullopt;
}

std::string band_pattern() {
  std::string element = "(0";
  for (int n = kBandStep; n <= kMostBandDims; n += kBandStep) element += "|" + std::to_string(n);
  const std::string band = element + "):" + element + ")";
  return "^" + band + "(," + band + ")*$";
}

std::optional<Band> only_band(std::string_view text, int head_dim) {
  if (text.empty()) return Band{0, head_dim};
  const std::uint32_t steps = band_steps(text).value_or(0);
  const int first = std::countr_zero(steps), count = std::popcount(steps);
  if (count == 0 || width_of(steps) != first + count) return std::nullopt;
  return Band{first * kBandStep, (first + count) * kBandStep};
}

int last_band_end(std::uint32_t steps) { return width_of(steps) * kBandStep; }

}  // namespace lacuna
