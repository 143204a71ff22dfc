#include "runtime/group/layout.hpp"

#include <array>

namespace lacuna::group {
namespace {

void add_range(std::vector<Range>& ranges, Range range) {
  if (range.empty()) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

std::vector<Range> stripes_of(std::int32_t tokens, std::int32_t stripe, int rank, int size) {
  std::vector<Range> ranges;
  for (std::int64_t begin = 0, index = 0; begin < tokens; begin += stripe, ++index) {
    const auto place = static_cast<int>(index % size);
    const bool is_forth = index / size % 2 == 0;
    if ((is_forth ? place : size - 1 - place) != rank) continue;
    const auto end = std::min<std::int64_t>(begin + stripe, tokens);
    add_range(ranges, {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
  }
  return ranges;
}

std::vector<Range> tokens_of(const Layout& layout, std::int32_t tokens, int rank, int size) {
  std::vector<Range> ranges;
  switch (layout.kind) {
    case LayoutKind::kContiguous:
      add_range(ranges, part_of(tokens, rank, size));
      break;
    case LayoutKind::kStriped:
      ranges = stripes_of(tokens, layout.stripe, rank, size);
      break;
    case LayoutKind::kHeads:
      add_range(ranges, {0, tokens});
      break;
  }
  return ranges;
}

}  // namespace

std::string_view name_of(LayoutKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"contiguous", "striped", "heads"};
  return kNames[static_cast<std::size_t>(kind)];
}

Range part_of(std::int32_t total, int index, int count) {
  const auto cut = [&](int n) {
    return static_cast<std::int32_t>(std::int64_t{total} * n / count);
  };
  return {cut(index), cut(index + 1)};
}

std::int32_t token_count(const std::vector<Range>& ranges) {
  std::int32_t count = 0;
  for (const Range& range : ranges) count += range.count();
  return count;
}

std::int32_t row_of(const std::vector<Range>& ranges, std::int32_t token) {
  std::int32_t row = 0;
  for (const Range& range : ranges) {
    if (token < range.end) return row + token - range.begin;
    row += range.count();
  }
  return row;
}

std::vector<Share> shares_of(const Layout& layout, const LaunchShape& shape, int size) {
  std::vector<Share> shares;
  const std::int32_t heads_of_kv = shape.n_h_kv > 0 ? shape.n_h / shape.n_h_kv : 0;
  for (int rank = 0; rank < size; ++rank) {
    Share share;
    share.heads_kv = layout.kind == LayoutKind::kHeads ? part_of(shape.n_h_kv, rank, size)
                                                       : Range{0, shape.n_h_kv};
    share.heads = {share.heads_kv.begin * heads_of_kv, share.heads_kv.end * heads_of_kv};
    share.q = tokens_of(layout, shape.n_q, rank, size);
    share.k = tokens_of(layout, shape.n_k, rank, size);
    shares.push_back(std::move(share));
  }
  return shares;
}

LaunchShape shape_of(const Share& share, const LaunchShape& whole) {
  return {whole.n_b, share.heads.count(), share.heads_kv.count(), token_count(share.q),
          token_count(share.k)};
}

Range kv_heads_of(Range heads, const LaunchShape& shape) {
  if (heads.empty()) return {};
  const std::int32_t heads_of_kv = shape.n_h / shape.n_h_kv;
  return {heads.begin / heads_of_kv, (heads.end - 1) / heads_of_kv + 1};
}

}  // namespace lacuna::group
