// A work tile whose keys are gathered: the kept columns, in ascending order, are copied into
// tiles of tile_k keys, and each key keeps its own index for mask and score.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "runtime/cpu/llvm/tensor_access.hpp"
#include "runtime/cpu/llvm/work_tile.hpp"

namespace lacuna::host {
namespace {

struct Gathering {
  const Kernel& kernel;
  const HostArgs& args;
  const WorkTile& row;
  Scratch& scratch;
  std::int32_t h_kv;
  std::int32_t columns;  ///< of keep_k keys each, in all
};

/// Keys of the kept columns, ascending; returns the number of columns.
std::int32_t list_keys(const Gathering& g) {
  const auto* bits = element<const std::uint32_t>(g.args.columns, g.row.b, g.row.h, g.row.i);
  std::int32_t kept = 0;
  g.scratch.keys.clear();
  for (std::int32_t first = 0; first < g.columns; first += 32) {
    for (std::uint32_t word = bits[first / 32]; word != 0; word &= word - 1) {
      const std::int32_t begin = (first + std::countr_zero(word)) * g.kernel.keep_k;
      const std::int32_t end = std::min(begin + g.kernel.keep_k, g.args.n_k);
      for (std::int32_t key = begin; key < end; ++key) g.scratch.keys.push_back(key);
      ++kept;
    }
  }
  return kept;
}

/// Copies rows of k or v, of `width` elements, side by side, to where the next call does the same.
const std::byte* gather_rows(const Gathering& g, const HostTensor& tensor, int width,
                             const std::int32_t* keys, std::int64_t count) {
  const auto row_bytes =
      static_cast<std::size_t>(width) * static_cast<std::size_t>(size_bytes(g.kernel.dtype));
  std::byte* rows = g.scratch.gathered_rows.data();
  const auto bytes = static_cast<std::int64_t>(size_bytes(g.kernel.dtype));
  const auto* head = static_cast<const std::byte*>(tensor.data) +
                     bytes * (g.row.b * tensor.stride[0] + g.h_kv * tensor.stride[1]);
  for (std::int64_t n = 0; n < count; ++n)
    std::memcpy(rows + static_cast<std::size_t>(n) * row_bytes,
                head + bytes * keys[n] * tensor.stride[2], row_bytes);
  return rows;
}

/// One tile of `count` gathered keys, the first of which is number `first`.
void visit_gathered(const Gathering& g, int rows, int scored, std::int32_t first,
                    std::int32_t count) {
  Frame& frame = g.scratch.frame;
  const Kernels& functions = g.kernel.functions;
  const std::int32_t* keys = g.scratch.keys.data() + first;
  const int d = g.kernel.shape.head_dim, d_v = g.kernel.shape.head_dim_v;
  functions.pack_k(gather_rows(g, g.args.k, d, keys, count), d, count, g.scratch.k_panels);
  frame.v_is_finite = functions.pack_v(gather_rows(g, g.args.v, d_v, keys, count), d_v, count,
                                       g.scratch.v_panels) != 0;
  std::copy_n(keys, count, frame.gathered);
  // Slots past the last key repeat it: in range for parameters indexed by it, masked all the same.
  std::fill(frame.gathered + count, frame.gathered + g.kernel.shape.keys.padded_columns(),
            keys[count - 1]);
  frame.k = g.scratch.k_panels;
  frame.v = g.scratch.v_panels;
  frame.k0 = first;
  frame.k1 = first + count - 1;
  frame.apply_mask = 1;
  functions.scores_partial(&frame, 0, scored);
  std::fill(frame.tile_max + rows, frame.tile_max + round_up(scored, kGroupRows),
            -std::numeric_limits<float>::infinity());
  functions.softmax(&frame, 0, scored);
  add_values(g.kernel, frame, 0, scored);
}

/// Columns that the mask may leave visible to the row.
std::int32_t count_visible_columns(const Gathering& g) {
  Frame& frame = g.scratch.frame;
  std::int32_t visible = 0;
  for (std::int32_t column = 0; column < g.columns; ++column) {
    frame.k0 = column * g.kernel.keep_k;
    frame.k1 = std::min(frame.n_k, frame.k0 + g.kernel.keep_k) - 1;
    if (static_cast<TileClass>(g.kernel.functions.classify(&frame)) != TileClass::kEmpty) ++visible;
  }
  return visible;
}

void report(const Gathering& g, std::int32_t kept) {
  if (auto* mask = element<std::uint8_t>(g.args.tile_mask, g.row.b, g.row.h, g.row.i)) {
    const std::int64_t stride = g.args.tile_mask.stride[3];
    for (std::int32_t column = 0; column < g.columns; ++column) mask[column * stride] = 0;
    for (const std::int32_t key : g.scratch.keys) mask[key / g.kernel.keep_k * stride] = 1;
  }
  if (auto* counts = element<std::int32_t>(g.args.counts, g.row.b, g.row.h, g.row.i)) {
    const std::int64_t stride = g.args.counts.stride[3];
    counts[0] = count_visible_columns(g);
    counts[stride] = kept;
    counts[2 * stride] = 0;
  }
}

}  // namespace

void attend_gathered_row(const Kernel& kernel, const HostArgs& args, const WorkTile& row,
                         Scratch& scratch) {
  Frame& frame = scratch.frame;
  place_frame(kernel, args, row, frame);
  const int rows = frame.q1 - frame.q0 + 1;
  const int scored = scored_rows(kernel, frame);
  const Gathering g{.kernel = kernel,
                    .args = args,
                    .row = row,
                    .scratch = scratch,
                    .h_kv = row.h / (args.n_h / args.n_h_kv),
                    .columns = ceil_div(args.n_k, kernel.keep_k)};
  scratch.gathered_rows.resize(
      static_cast<std::size_t>(kernel.shape.tile_k) *
      static_cast<std::size_t>(std::max(kernel.shape.head_dim, kernel.shape.head_dim_v)) *
      static_cast<std::size_t>(size_bytes(kernel.dtype)));
  begin_rows(kernel, args, row, rows, scored, frame);
  const std::int32_t kept = list_keys(g);
  const auto total = static_cast<std::int32_t>(scratch.keys.size());
  const std::int32_t tile = kernel.shape.tile_k;
  const std::int32_t tiles = ceil_div(total, tile);
  for (std::int32_t n = 0; n < tiles; ++n) {
    const std::int32_t first = (kernel.descending ? tiles - 1 - n : n) * tile;
    visit_gathered(g, rows, scored, first, std::min(tile, total - first));
  }
  write_rows(kernel, args, row, rows, frame);
  report(g, kept);
}

}  // namespace lacuna::host
