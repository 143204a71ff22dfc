#include "runtime/cpu/llvm/work_tile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/llvm/tensor_access.hpp"

namespace lacuna::host {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr std::uint32_t kNeedsMask = 0x80000000U;

/// What to do with 16 rows in the tile at hand.
enum class GroupWork : std::uint8_t { kNothing, kSum, kSumAndProduct };

struct Walk {
  const Kernel& kernel;
  const HostArgs& args;
  const WorkTile& row;
  Frame& frame;
  int rows;    ///< that exist
  int scored;  ///< rows, padded to whole register blocks
  bool first = true;
  std::int32_t visited = 0, gated = 0;
  std::vector<GroupWork> work{};

  int groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
  int begin_of(int group) const { return group * kGroupRows; }
  int end_of(int group) const { return std::min((group + 1) * kGroupRows, scored); }
  TileClass classify() const {
    return by_pairs(static_cast<TileClass>(kernel.functions.classify(&frame)));
  }
  /// What bounds leave open of the tile at hand, its pairs say, if the Program wants them asked.
  TileClass by_pairs(TileClass found) const;
};

TileClass Walk::by_pairs(TileClass found) const {
  if (found != TileClass::kPartial || kernel.functions.classify_row == nullptr) return found;
  bool some = false, all = true;
  for (std::int32_t q = frame.q0; q <= frame.q1; ++q) {
    const auto row = static_cast<TileClass>(kernel.functions.classify_row(&frame, q));
    some = some || row != TileClass::kEmpty;
    all = all && row == TileClass::kFull;
    if (some && !all) return TileClass::kPartial;
  }
  return all ? TileClass::kFull : TileClass::kEmpty;
}

/// Calls run(begin, end) for each maximal range of rows whose groups have the same kind.
template <class KindOf, class Run>
void for_ranges(const Walk& walk, const KindOf& kind_of, const Run& run) {
  for (int group = 0; group < walk.groups();) {
    int next = group + 1;
    while (next < walk.groups() && kind_of(next) == kind_of(group)) ++next;
    run(kind_of(group), walk.begin_of(group), walk.end_of(next - 1));
    group = next;
  }
}

/// How the rows of a group see a tile that needs the mask; finer than the whole tile's class.
TileClass classify_group(const Walk& walk, int group) {
  Frame part = walk.frame;
  part.q0 += walk.begin_of(group);
  part.q1 = std::min(walk.frame.q1, part.q0 + kGroupRows - 1);
  return static_cast<TileClass>(walk.kernel.functions.classify(&part));
}

/// Logits and row maxima. Groups that see nothing of the tile get no work.
void score_tile(Walk& walk, TileClass whole) {
  Frame& frame = walk.frame;
  const Kernels& functions = walk.kernel.functions;
  const bool all_keys = frame.k1 - frame.k0 + 1 == walk.kernel.shape.keys.padded_columns();
  std::vector<TileClass> classes(static_cast<std::size_t>(walk.groups()), whole);
  frame.apply_mask = whole == TileClass::kPartial ? 1 : 0;
  for (int group = 0; group < walk.groups() && frame.apply_mask != 0; ++group)
    classes[static_cast<std::size_t>(group)] = classify_group(walk, group);
  const auto class_of = [&](int group) { return classes[static_cast<std::size_t>(group)]; };
  for_ranges(walk, class_of, [&](TileClass kind, int begin, int end) {
    if (kind == TileClass::kEmpty)
      std::fill(frame.tile_max + begin, frame.tile_max + end, kLowest);
    else if (kind == TileClass::kFull && all_keys)
      functions.scores_full(&frame, begin, end);
    else
      functions.scores_partial(&frame, begin, end);
  });
  std::fill(frame.tile_max + walk.rows, frame.tile_max + round_up(walk.scored, kGroupRows),
            kLowest);
  for (int group = 0; group < walk.groups(); ++group)
    walk.work[static_cast<std::size_t>(group)] =
        class_of(group) == TileClass::kEmpty ? GroupWork::kNothing : GroupWork::kSumAndProduct;
}

/// The gate's decision over rows [begin, end); statistics as ir/program.hpp defines them.
bool gate_skips(const Walk& walk, int begin, int end) {
  float tile_max = kLowest;
  float gap = kLowest;
  for (int row = begin; row < end; ++row) {
    const float here = walk.frame.tile_max[row];
    if (here == kLowest) continue;
    tile_max = std::max(tile_max, here);
    gap = std::max(gap, here - walk.frame.row_max[row]);
  }
  return walk.kernel.functions.gate(&walk.frame, tile_max, gap) != 0;
}

/// Takes work away from the scopes that the gate skips; true if it skips all of them.
bool apply_gate(Walk& walk) {
  const GatePlan& gate = *walk.kernel.gate;
  const int step = gate.by_group ? 1 : walk.groups();
  bool all = true;
  for (int group = 0; group < walk.groups(); group += step) {
    const int end = std::min(walk.begin_of(group + step), walk.rows);
    if (!gate_skips(walk, walk.begin_of(group), end)) {
      all = false;
      continue;
    }
    for (int g = group; g < group + step; ++g) {
      GroupWork& work = walk.work[static_cast<std::size_t>(g)];
      work = std::min(work, gate.keeps_sum ? GroupWork::kSum : GroupWork::kNothing);
    }
  }
  return all;
}

/// Scales and biases of the tile's keys.
void load_key_scales(const Walk& walk) {
  const HostArgs& args = walk.args;
  const Frame& frame = walk.frame;
  const std::int64_t keys = frame.k1 - frame.k0 + 1;
  copy_tokens(args.k_scale, walk.row.b, walk.row.h / (args.n_h / args.n_h_kv), frame.k0, keys,
              frame.k_scale);
  copy_tokens(args.column_bias, walk.row.b, walk.row.h, frame.k0, keys, frame.column_bias);
}

/// Returns the tile's code in tile_mask.
std::uint8_t visit_tile(Walk& walk, TileClass whole) {
  if (walk.kernel.scales_qk) load_key_scales(walk);
  score_tile(walk, whole);
  const bool gated = walk.kernel.gate && !walk.first && apply_gate(walk);
  walk.first = false;
  ++walk.visited;
  if (gated) ++walk.gated;
  const Kernels& functions = walk.kernel.functions;
  const auto work_of = [&](int group) { return walk.work[static_cast<std::size_t>(group)]; };
  for_ranges(walk, work_of, [&](GroupWork work, int begin, int end) {
    if (work == GroupWork::kNothing) return;
    functions.softmax(&walk.frame, begin, end);
    if (work == GroupWork::kSumAndProduct) add_values(walk.kernel, walk.frame, begin, end);
  });
  return gated ? 2 : 1;
}

/// Moves the frame to each tile of the row in the Program's order and calls visit(class). Entries
/// of a list that are no key tile are ignored.
template <class Visit>
void for_tiles(Walk& walk, const Visit& visit) {
  const HostArgs& args = walk.args;
  const WorkTile& row = walk.row;
  const bool lists = walk.kernel.uses_lists;
  std::int32_t count = walk.frame.n_j;
  if (lists) count = std::min(count, *element<std::int32_t>(args.list_counts, row.b, row.h, row.i));
  for (std::int32_t n = 0; n < count; ++n) {
    const std::int32_t slot = walk.kernel.descending ? count - 1 - n : n;
    if (lists) {
      const auto entry = static_cast<std::uint32_t>(
          *element<std::int32_t>(args.list_indices, row.b, row.h, row.i, slot));
      const auto j = static_cast<std::int32_t>(entry & ~kNeedsMask);
      if (j >= walk.frame.n_j) continue;
      move_to_tile(walk.kernel, j, walk.frame);
      const TileClass kind =
          (entry & kNeedsMask) != 0 ? walk.by_pairs(TileClass::kPartial) : TileClass::kFull;
      if (kind != TileClass::kEmpty) visit(kind);
      continue;
    }
    move_to_tile(walk.kernel, slot, walk.frame);
    const TileClass kind = walk.classify();
    if (kind != TileClass::kEmpty) visit(kind);
  }
}

std::int32_t count_visible(Walk& walk) {
  std::int32_t visible = 0;
  for (std::int32_t j = 0; j < walk.frame.n_j; ++j) {
    move_to_tile(walk.kernel, j, walk.frame);
    if (walk.classify() != TileClass::kEmpty) ++visible;
  }
  return visible;
}

/// Each row has a logit more, which has no value: maximum, sum and what o is still multiplied with
/// follow.
void add_sinks(const Kernel& kernel, int rows, const Frame& frame) {
  for (int r = 0; r < rows; ++r) {
    const float sink = kernel.functions.sink(&frame, frame.q0 + r);
    const float before = frame.row_max[r], largest = std::max(before, sink);
    const float shift = largest == kLowest ? 0 : largest;
    const float decay = std::exp(before - shift);
    frame.row_sum[r] = frame.row_sum[r] * decay + std::exp(sink - shift);
    frame.row_max[r] = largest;
    frame.pending[r] *= decay;
  }
}

}  // namespace

void begin_rows(const Kernel& kernel, const HostArgs& args, const WorkTile& row, int rows,
                int scored, Frame& frame) {
  const Shape& shape = kernel.shape;
  const int padded = round_up(scored, kGroupRows);
  auto* q = const_cast<float*>(frame.q);
  const int bytes = size_bytes(kernel.dtype);
  const auto* source =
      static_cast<const char*>(args.q.data) +
      bytes * (row.b * args.q.stride[0] + row.h * args.q.stride[1] + frame.q0 * args.q.stride[2]);
  kernel.functions.pack_q(source, args.q.stride[2], rows, q);
  const std::ptrdiff_t d = shape.head_dim;
  std::fill(q + rows * d, q + scored * d, 0.0F);
  std::fill(frame.o, frame.o + std::ptrdiff_t{scored} * shape.values.padded_columns(), 0.0F);
  std::fill(frame.row_max, frame.row_max + padded, kLowest);
  std::fill(frame.row_sum, frame.row_sum + padded, 0.0F);
  std::fill(frame.pending, frame.pending + padded, 1.0F);
  if (kernel.scales_v)
    frame.v_scale = element<const float>(args.v_scale, row.b, row.h / (args.n_h / args.n_h_kv), 0);
  if (!kernel.scales_qk) return;
  copy_tokens(args.q_scale, row.b, row.h, frame.q0, rows, frame.q_scale);
  copy_tokens(args.row_bias, row.b, row.h, frame.q0, rows, frame.row_bias);
}

void write_rows(const Kernel& kernel, const HostArgs& args, const WorkTile& row, int rows,
                const Frame& frame) {
  const int bytes = size_bytes(kernel.dtype);
  auto* target =
      static_cast<char*>(args.o.data) +
      bytes * (row.b * args.o.stride[0] + row.h * args.o.stride[1] + frame.q0 * args.o.stride[2]);
  if (kernel.functions.sink != nullptr) add_sinks(kernel, rows, frame);
  kernel.functions.store_o(&frame, target, args.o.stride[2], rows);
  for (int r = 0; r < rows && args.lse.data != nullptr; ++r) {
    const float sum = frame.row_sum[r];
    *element<float>(args.lse, row.b, row.h, frame.q0 + r) =
        sum == 0 ? kLowest : (frame.row_max[r] + std::log(sum)) * kernel.lse_factor;
  }
}

void add_values(const Kernel& kernel, const Frame& frame, std::int64_t begin, std::int64_t end) {
  const Kernels& functions = kernel.functions;
  (frame.v_is_finite ? functions.accumulate : functions.accumulate_nonzero)(&frame, begin, end);
}

int scored_rows(const Kernel& kernel, const Frame& frame) {
  const int block = std::max(kernel.shape.keys.block.rows, kernel.shape.values.block.rows);
  return round_up(frame.q1 - frame.q0 + 1, block);
}

void place_frame(const Kernel& kernel, const HostArgs& args, const WorkTile& row, Frame& frame) {
  frame.params = args.params;
  frame.n_b = args.n_b;
  frame.n_h = args.n_h;
  frame.n_h_kv = args.n_h_kv;
  frame.n_q = args.n_q;
  frame.n_k = args.n_k;
  frame.scale = softmax_scale(args, kernel.scale);
  frame.b = args.first_b + row.b;
  frame.h = row.h;
  frame.i = row.i;
  frame.n_i = ceil_div(args.n_q, kernel.shape.tile_q);
  frame.n_j = ceil_div(args.n_k, kernel.shape.tile_k);
  frame.q0 = row.i * kernel.shape.tile_q;
  frame.q1 = std::min(args.n_q, frame.q0 + kernel.shape.tile_q) - 1;
}

void move_to_tile(const Kernel& kernel, std::int32_t j, Frame& frame) {
  frame.j = j;
  frame.k0 = j * kernel.shape.tile_k;
  frame.k1 = std::min(frame.n_k, frame.k0 + kernel.shape.tile_k) - 1;
}

void attend_row(const Kernel& kernel, const HostArgs& args, const WorkTile& row, Scratch& scratch) {
  if (kernel.keep_k > 0) return attend_gathered_row(kernel, args, row, scratch);
  Frame& frame = scratch.frame;
  place_frame(kernel, args, row, frame);
  const int rows = frame.q1 - frame.q0 + 1;
  Walk walk{.kernel = kernel,
            .args = args,
            .row = row,
            .frame = frame,
            .rows = rows,
            .scored = scored_rows(kernel, frame)};
  walk.work.resize(static_cast<std::size_t>(walk.groups()));
  begin_rows(kernel, args, row, rows, walk.scored, frame);

  auto* mask = element<std::uint8_t>(args.tile_mask, row.b, row.h, row.i);
  for (std::int32_t j = 0; j < frame.n_j && mask != nullptr; ++j)
    mask[j * args.tile_mask.stride[3]] = 0;
  for_tiles(walk, [&](TileClass kind) {
    frame.k = row.k_tiles + frame.j * kernel.shape.keys.floats();
    frame.v = row.v_tiles + frame.j * kernel.shape.values.floats();
    frame.v_is_finite = row.v_is_finite[frame.j] != 0;
    const std::uint8_t code = visit_tile(walk, kind);
    if (mask != nullptr) mask[frame.j * args.tile_mask.stride[3]] = code;
  });
  write_rows(kernel, args, row, rows, frame);
  if (auto* counts = element<std::int32_t>(args.counts, row.b, row.h, row.i)) {
    const std::int64_t stride = args.counts.stride[3];
    counts[0] = kernel.uses_lists ? count_visible(walk) : walk.visited;
    counts[stride] = walk.visited;
    counts[2 * stride] = walk.gated;
  }
}

}  // namespace lacuna::host
