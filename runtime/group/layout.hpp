// Who holds what: the shares of a problem's tokens or heads that the ranks of a group were given.
//
//   contiguous, 2 ranks     0 0 0 0 0 0 1 1 1 1 1 1     tokens
//   striped                 0 0 1 1 1 1 0 0 0 0 1 1     stripes go to and fro, which balances
//   causal masks heads                   rank r has all tokens of some KV heads and of their query
//   heads
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/emit/launch_program.hpp"

namespace lacuna::group {

struct Range {
  std::int32_t begin = 0, end = 0;
  std::int32_t count() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool contains(Range other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Range&) const = default;
};

/// Empty where they have nothing in common.
inline Range intersect(Range a, Range b) {
  const std::int32_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Part `index` of `count` equal parts of `total` things, to the nearest whole one.
Range part_of(std::int32_t total, int index, int count);

enum class LayoutKind : std::uint8_t { kContiguous, kStriped, kHeads };
std::string_view name_of(LayoutKind kind);

struct Layout {
  LayoutKind kind = LayoutKind::kContiguous;
  std::int32_t stripe = 0;  ///< tokens of a stripe (kStriped)
};

/// What a rank holds: these heads of these tokens, one behind the other in ascending order.
struct Share {
  Range heads, heads_kv;
  std::vector<Range> q, k;
};

std::int32_t token_count(const std::vector<Range>& ranges);

/// The row of a token that the ranges have.
std::int32_t row_of(const std::vector<Range>& ranges, std::int32_t token);

/// The shares of all ranks.
std::vector<Share> shares_of(const Layout& layout, const LaunchShape& shape, int size);

/// The extents of a rank's tensors.
LaunchShape shape_of(const Share& share, const LaunchShape& whole);

/// The KV heads that query heads read.
Range kv_heads_of(Range heads, const LaunchShape& shape);

}  // namespace lacuna::group
