#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/fp8.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

/// The larger magnitude; NaN and infinity do not take part: other tokens have the same scale.
float larger(float largest, float value) {
  return std::max(largest, std::fabs(finite_or_zero(value)));
}

/// A scale that maps `largest` to `range`; 1 where nothing else would do.
float scale_for(float largest, float range) {
  const float scale = largest / range;
  return scale > 0 ? scale : 1.0F;
}

/// Round half away from zero, saturating. NaN has no integer: it becomes 0.
std::int8_t to_integer(float value, float scale, float range) {
  const float rounded = std::round(value / scale);
  return std::isnan(rounded) ? std::int8_t{0}
                             : static_cast<std::int8_t>(std::clamp(rounded, -range, range));
}

/// e4m3 has no infinity: it becomes NaN.
std::uint8_t to_code(float value, float scale) {
  return f32_to_e4m3(std::isinf(value) ? std::numeric_limits<float>::quiet_NaN() : value / scale);
}

struct QuantiseScratch {
  std::vector<float> rows;     ///< the tile's tokens
  std::vector<float> largest;  ///< of each group of the tile
};

}  // namespace

int groups_of_tile(QuantGroup group, bool is_query, int tile) {
  switch (group) {
    case QuantGroup::kBlock:
      return 1;
    case QuantGroup::kWarp:
      return is_query ? ceil_div(tile, 16) : 1;
    case QuantGroup::kThread:
      break;
  }
  return is_query ? ceil_div(tile, 16) * 8 : ceil_div(tile, 32) * 4;
}

int group_of_token(QuantGroup group, bool is_query, int tile, int token) {
  const int base = token / tile * groups_of_tile(group, is_query, tile);
  const int n = token % tile;
  switch (group) {
    case QuantGroup::kBlock:
      return base;
    case QuantGroup::kWarp:
      return is_query ? base + n / 16 : base;
    case QuantGroup::kThread:
      break;
  }
  return is_query ? base + n / 16 * 8 + n % 8 : base + n / 32 * 4 + n % 8 / 2;
}

Quantised quantise(const Array& x, const Array* mean, const Quantise& op, bool is_query,
                   const Threads& threads) {
  const int width = x.width(), tiles = ceil_div(x.tokens(), op.tile);
  const int groups = groups_of_tile(op.group, is_query, op.tile);
  const float range = op.bits == 4 ? 7.0F : 127.0F;
  Quantised result{make_array(Element::kI8, x.batches(), x.heads(), x.tokens(), width),
                   make_array(Element::kF32, x.batches(), x.heads(), x.tokens())};
  const std::int64_t items = x.head_count() * tiles;
  const std::size_t workers = worker_count(threads, items);
  std::vector<QuantiseScratch> scratch(
      workers,
      {std::vector<float>(static_cast<std::size_t>(op.tile) * static_cast<std::size_t>(width)),
       std::vector<float>(static_cast<std::size_t>(groups))});
  parallel_for(threads, workers, items, [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(x, item / tiles);
    const int t = static_cast<int>(item % tiles);
    const int begin = t * op.tile, end = std::min(begin + op.tile, x.tokens());
    auto& [rows, largest] = scratch[worker];
    const auto row_of = [&](int n) { return rows.data() + std::ptrdiff_t{n - begin} * width; };
    const auto largest_of = [&](int n) -> float& {
      const int group = group_of_token(op.group, is_query, op.tile, n) - t * groups;
      return largest[static_cast<std::size_t>(group)];
    };
    std::fill(largest.begin(), largest.end(), 0.0F);
    for (int n = begin; n < end; ++n) {
      load_centred(x, mean ? at<float>(*mean, head, 0) : nullptr, head, n, row_of(n));
      float& group = largest_of(n);
      for (int c = 0; c < width; ++c) group = larger(group, row_of(n)[c]);
    }
    for (int n = begin; n < end; ++n) {
      const float scale = scale_for(largest_of(n), range);
      *at<float>(result.scales, head, n) = scale;
      auto* to = at<std::int8_t>(result.values, head, n);
      for (int c = 0; c < width; ++c) to[c] = to_integer(row_of(n)[c], scale, range);
    }
  });
  return result;
}

Quantised quantise_values(const Array& x, float range, const Threads& threads) {
  const auto width = static_cast<std::size_t>(x.width());
  Quantised result{make_array(Element::kE4M3, x.batches(), x.heads(), x.tokens(), x.width()),
                   make_array(Element::kF32, x.batches(), x.heads(), x.width())};
  const std::size_t workers = worker_count(threads, x.head_count());
  std::vector<std::vector<float>> rows(workers, std::vector<float>(width));
  parallel_for(threads, workers, x.head_count(), [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(x, item);
    std::vector<float>& row = rows[worker];
    float* scales = at<float>(result.scales, head, 0);
    std::fill(scales, scales + width, 0.0F);
    for (int n = 0; n < x.tokens(); ++n) {
      load_row(x, head, n, row.data());
      for (std::size_t c = 0; c < width; ++c) scales[c] = larger(scales[c], row[c]);
    }
    for (std::size_t c = 0; c < width; ++c) scales[c] = scale_for(scales[c], range);
    for (int n = 0; n < x.tokens(); ++n) {
      load_row(x, head, n, row.data());
      auto* to = at<std::uint8_t>(result.values, head, n);
      for (std::size_t c = 0; c < width; ++c) to[c] = to_code(row[c], scales[c]);
    }
  });
  return result;
}

}  // namespace lacuna::predict
