#include "runtime/launch/param_promises.hpp"

#include <array>
#include <cmath>
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

bool is_empty(const ParamView& view, std::size_t rank) {
  for (std::size_t d = 0; d < rank; ++d)
    if (view.extent[d] == 0) return true;
  return view.data == nullptr || rank == 0;
}

/// The next row; false behind the last one.
bool advance(Place& place, const ParamView& view, std::size_t rank) {
  for (std::size_t d = rank - 1; d-- > 0;) {
    if (++place[d] < view.extent[d]) return true;
    place[d] = 0;
  }
  return false;
}

/// look(row, place): what is wrong in a row, which begins at an element; the first such text.
template <class Look>
std::optional<std::string> first_in_rows(const ParamView& view, std::size_t rank,
                                         const Look& look) {
  Place place{};
  do {
    std::int64_t row = 0;
    for (std::size_t d = 0; d + 1 < rank; ++d) row += place[d] * view.stride[d];
    if (auto found = look(row, place)) return found;
  } while (advance(place, view, rank));
  return std::nullopt;
}

template <class T>
std::optional<std::string> first_fall_of(const T* data, const ParamView& view, std::size_t rank) {
  const std::size_t last = rank - 1;
  return first_in_rows(view, rank, [&](std::int64_t row, Place& place) {
    for (std::int32_t n = 1; n < view.extent[last]; ++n) {
      const T before = data[row + (n - 1) * view.stride[last]];
      const T value = data[row + n * view.stride[last]];
      if (value >= before) continue;
      place[last] = n;
      return std::optional("value " + value_text(static_cast<double>(value)) + " at " +
                           place_text(place, rank) + " is not at least " +
                           value_text(static_cast<double>(before)) + ", the one before it");
    }
    return std::optional<std::string>();
  });
}

template <class T>
std::optional<std::string> first_outside_of(const T* data, const ParamSpec& param,
                                            const ParamView& view, std::size_t rank) {
  const std::size_t last = rank - 1;
  return first_in_rows(view, rank, [&](std::int64_t row, Place& place) {
    for (std::int32_t n = 0; n < view.extent[last]; ++n) {
      const auto value = static_cast<double>(data[row + n * view.stride[last]]);
      if (value >= param.minimum && value <= param.maximum) continue;
      place[last] = n;
      return std::optional("expected values in [" + value_text(param.minimum) + ", " +
                           value_text(param.maximum) + "], got " + value_text(value) + " at " +
                           place_text(place, rank));
    }
    return std::optional<std::string>();
  });
}

}  // namespace

std::optional<std::string> first_fall(const ParamSymbol& symbol, const ParamView& view) {
  const std::size_t rank = symbol.shape.size();
  if (is_empty(view, rank)) return std::nullopt;
  if (symbol.type == ExprType::kI32)
    return first_fall_of(static_cast<const std::int32_t*>(view.data), view, rank);
  return first_fall_of(static_cast<const float*>(view.data), view, rank);
}

std::optional<std::string> first_outside(const ParamSpec& param, const ParamView& view) {
  const std::size_t rank = param.symbol.shape.size();
  const bool has_range = !std::isinf(param.minimum) || !std::isinf(param.maximum);
  if (!has_range || is_empty(view, rank)) return std::nullopt;
  if (param.symbol.type == ExprType::kI32)
    return first_outside_of(static_cast<const std::int32_t*>(view.data), param, view, rank);
  return first_outside_of(static_cast<const float*>(view.data), param, view, rank);
}

std::optional<std::string> broken_promise(const ParamSpec& param, const ParamView& view) {
  if (auto outside = first_outside(param, view)) return outside;
  if (!param.symbol.monotone) return std::nullopt;
  const auto fall = first_fall(param.symbol, view);
  return fall ? std::optional("is declared monotone, but " + *fall) : std::nullopt;
}

}  // namespace lacuna
