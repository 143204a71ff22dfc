#include "runtime/launch/monotone.hpp"

#include <array>
#include <cstdio>

namespace lacuna {
namespace {

using Place = std::array<std::int32_t, kMaxParamRank>;

std::string value_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string place_text(const Place& place, std::size_t rank) {
  std::string text;
  for (std::size_t d = 0; d < rank; ++d) text += (d == 0 ? "[" : ", ") + std::to_string(place[d]);
  return text + "]";
}

/// The next row; false behind the last one.
bool advance(Place& place, const ParamView& view, std::size_t rank) {
  for (std::size_t d = rank - 1; d-- > 0;) {
    if (++place[d] < view.extent[d]) return true;
    place[d] = 0;
  }
  return false;
}

template <class T>
std::optional<std::string> first_fall_of(const T* data, const ParamView& view, std::size_t rank) {
  const std::size_t last = rank - 1;
  Place place{};
  do {
    std::int64_t row = 0;
    for (std::size_t d = 0; d < last; ++d) row += place[d] * view.stride[d];
    for (std::int32_t n = 1; n < view.extent[last]; ++n) {
      const T before = data[row + (n - 1) * view.stride[last]];
      const T value = data[row + n * view.stride[last]];
      if (value >= before) continue;
      place[last] = n;
      return "value " + value_text(static_cast<double>(value)) + " at " + place_text(place, rank) +
             " is not at least " + value_text(static_cast<double>(before)) + ", the one before it";
    }
  } while (advance(place, view, rank));
  return std::nullopt;
}

}  // namespace

std::optional<std::string> first_fall(const ParamSymbol& symbol, const ParamView& view) {
  const std::size_t rank = symbol.shape.size();
  if (view.data == nullptr || rank == 0) return std::nullopt;
  for (std::size_t d = 0; d < rank; ++d)
    if (view.extent[d] == 0) return std::nullopt;
  if (symbol.type == ExprType::kI32)
    return first_fall_of(static_cast<const std::int32_t*>(view.data), view, rank);
  return first_fall_of(static_cast<const float*>(view.data), view, rank);
}

}  // namespace lacuna
