// Packing, scheduling and argument checks around attend_row.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/llvm/kernel.hpp"
#include "runtime/cpu/llvm/tensor_access.hpp"
#include "runtime/cpu/llvm/work_tile.hpp"

namespace lacuna::host {
namespace {

/// Packed keys and values are kept for as many heads at once as fit in here, one at least.
constexpr std::size_t kPackedBytes = std::size_t{512} << 20;

struct Checked {
  std::string error;
  void require(bool condition, const std::string& message) {
    if (!condition && error.empty()) error = message;
  }
};

void check_tensors(const Kernel& kernel, const HostArgs& args, Checked& checked) {
  const auto passed = [&](const HostTensor& tensor, const char* name, bool needed) {
    checked.require(!needed || tensor.data != nullptr,
                    std::string(name) + ": expected a tensor, got none");
  };
  const bool has_queries = args.n_b > 0 && args.n_h > 0 && args.n_q > 0;
  passed(args.q, "q", has_queries);
  passed(args.o, "o", has_queries);
  passed(args.k, "k", has_queries && args.n_k > 0);
  passed(args.v, "v", has_queries && args.n_k > 0);
  passed(args.list_indices, "list_indices", has_queries && args.n_k > 0 && kernel.uses_lists);
  passed(args.list_counts, "list_counts", has_queries && kernel.uses_lists);
  passed(args.columns, "columns", has_queries && args.n_k > 0 && kernel.keep_k > 0);
  passed(args.q_scale, "q_scale", has_queries && kernel.scales_qk);
  passed(args.k_scale, "k_scale", has_queries && args.n_k > 0 && kernel.scales_qk);
  passed(args.v_scale, "v_scale", has_queries && kernel.scales_v);
  checked.require(kernel.param_count == 0 || args.params != nullptr,
                  "params: expected " + std::to_string(kernel.param_count) + ", got none");
}

void check_shape(const HostArgs& args, Checked& checked) {
  const std::pair<const char*, std::int32_t> extents[] = {{"n_b", args.n_b},
                                                          {"n_h", args.n_h},
                                                          {"n_h_kv", args.n_h_kv},
                                                          {"n_q", args.n_q},
                                                          {"n_k", args.n_k}};
  for (const auto& [name, extent] : extents)
    checked.require(extent >= 0, std::string("shape: expected extents of at least 0, got ") + name +
                                     " = " + std::to_string(extent));
  checked.require(args.n_h == 0 || (args.n_h_kv > 0 && args.n_h % args.n_h_kv == 0),
                  "n_h_kv: expected a divisor of n_h = " + std::to_string(args.n_h) + ", got " +
                      std::to_string(args.n_h_kv));
}

/// KV heads [begin, end) of all batch entries, in the order b * n_h_kv + h_kv.
struct HeadRange {
  std::int32_t begin = 0, end = 0;
};

struct Packed {
  Floats k, v;
  std::vector<std::uint8_t> v_is_finite;  ///< of each value tile
  std::int64_t k_head, v_head, n_j;       ///< floats and tiles of one KV head
};

void pack_heads(const Kernel& kernel, const HostArgs& args, HeadRange heads, Packed& packed) {
  const Shape& shape = kernel.shape;
  const std::int32_t n_j = ceil_div(args.n_k, shape.tile_k);
  const int items = (heads.end - heads.begin) * n_j;
  const int bytes = size_bytes(kernel.dtype);
  const auto source = [&](const HostTensor& tensor, int head, std::int64_t key) {
    return static_cast<const char*>(tensor.data) +
           bytes * (head / args.n_h_kv * tensor.stride[0] + head % args.n_h_kv * tensor.stride[1] +
                    key * tensor.stride[2]);
  };
  parallel_for(
      args.threads, worker_count(args.threads, items), items, [&](std::int64_t item, std::size_t) {
        const auto slot = static_cast<int>(item / n_j);
        const auto j = static_cast<int>(item % n_j);
        const std::int64_t k0 = std::int64_t{j} * shape.tile_k;
        const std::int64_t keys = std::min<std::int64_t>(shape.tile_k, args.n_k - k0);
        const int head = heads.begin + slot;
        kernel.functions.pack_k(source(args.k, head, k0), args.k.stride[2], keys,
                                packed.k.data() + slot * packed.k_head + j * shape.keys.floats());
        const std::int32_t is_finite = kernel.functions.pack_v(
            source(args.v, head, k0), args.v.stride[2], keys,
            packed.v.data() + slot * packed.v_head + j * shape.values.floats());
        packed.v_is_finite[static_cast<std::size_t>(item)] = static_cast<std::uint8_t>(is_finite);
      });
}

/// Columns that a gathering row keeps.
std::int64_t count_columns(const Kernel& kernel, const HostArgs& args, const WorkTile& row) {
  const std::int32_t words = ceil_div(ceil_div(args.n_k, kernel.keep_k), 32);
  const auto* bits = element<const std::uint32_t>(args.columns, row.b, row.h, row.i);
  std::int64_t count = 0;
  for (std::int32_t word = 0; word < words; ++word) count += std::popcount(bits[word]);
  return count;
}

/// Tiles a row will visit, roughly: from its list, or from a sample of classifications.
std::int64_t estimate_tiles(const Kernel& kernel, const HostArgs& args, const WorkTile& row) {
  constexpr std::int32_t kSamples = 16;
  if (kernel.keep_k > 0) return count_columns(kernel, args, row);
  if (kernel.uses_lists) {
    const HostTensor& counts = args.list_counts;
    return static_cast<const std::int32_t*>(
        counts
            .data)[row.b * counts.stride[0] + row.h * counts.stride[1] + row.i * counts.stride[2]];
  }
  Frame frame;
  place_frame(kernel, args, row, frame);
  std::int64_t seen = 0;
  for (std::int32_t sample = 0; sample < std::min(kSamples, frame.n_j); ++sample) {
    move_to_tile(
        kernel,
        static_cast<std::int32_t>(std::int64_t{sample} * frame.n_j / std::min(kSamples, frame.n_j)),
        frame);
    if (kernel.functions.classify(&frame) != 0) ++seen;
  }
  return seen;
}

/// All work tiles of these heads, heaviest first, so that no worker is left alone at the end.
std::vector<WorkTile> plan_rows(const Kernel& kernel, const HostArgs& args, HeadRange heads,
                                const Packed& packed) {
  const std::int32_t group = args.n_h / args.n_h_kv;
  const std::int32_t n_i = ceil_div(args.n_q, kernel.shape.tile_q);
  std::vector<WorkTile> rows;
  std::vector<std::int64_t> weights;
  for (std::int32_t head = heads.begin; head < heads.end; ++head)
    for (std::int32_t member = 0; member < group; ++member)
      for (std::int32_t i = 0; i < n_i; ++i) {
        const std::int64_t slot = head - heads.begin;
        rows.push_back({.b = head / args.n_h_kv,
                        .h = head % args.n_h_kv * group + member,
                        .i = i,
                        .k_tiles = packed.k.data() + slot * packed.k_head,
                        .v_tiles = packed.v.data() + slot * packed.v_head,
                        .v_is_finite = packed.v_is_finite.data() + slot * packed.n_j});
        weights.push_back(estimate_tiles(kernel, args, rows.back()));
      }
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::vector<WorkTile> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t n : order) sorted.push_back(rows[n]);
  return sorted;
}

void run_heads(const Kernel& kernel, const HostArgs& args, HeadRange heads, Packed& packed) {
  if (args.n_k > 0 && kernel.keep_k == 0) pack_heads(kernel, args, heads, packed);
  const std::vector<WorkTile> rows = plan_rows(kernel, args, heads, packed);
  const auto items = static_cast<std::int64_t>(rows.size());
  const std::size_t workers = worker_count(args.threads, items);
  std::vector<Scratch> scratch;
  scratch.reserve(workers);
  for (std::size_t worker = 0; worker < workers; ++worker) scratch.emplace_back(kernel.shape);
  parallel_for(args.threads, workers, items, [&](std::int64_t item, std::size_t worker) {
    attend_row(kernel, args, rows[static_cast<std::size_t>(item)], scratch[worker]);
  });
}

}  // namespace

bool run_kernel(const Kernel& kernel, const HostArgs& args, std::string& error) {
  Checked checked;
  check_shape(args, checked);
  check_tensors(kernel, args, checked);
  if (!checked.error.empty()) return error = kernel.name + ", " + checked.error, false;
  const std::int32_t heads = args.n_b * args.n_h_kv;
  if (heads == 0 || args.n_h == 0 || args.n_q == 0) return true;

  // A gathering kernel packs the keys of each work tile by itself.
  const std::int64_t n_j = kernel.keep_k > 0 ? 0 : ceil_div(args.n_k, kernel.shape.tile_k);
  const std::int64_t k_head = n_j * kernel.shape.keys.floats();
  const std::int64_t v_head = n_j * kernel.shape.values.floats();
  const auto head_bytes = static_cast<std::size_t>(k_head + v_head) * sizeof(float);
  const auto at_once = static_cast<std::int32_t>(std::clamp<std::size_t>(
      head_bytes == 0 ? 1 : kPackedBytes / head_bytes, 1, static_cast<std::size_t>(heads)));
  Packed packed{.k = Floats(static_cast<std::size_t>(k_head * at_once)),
                .v = Floats(static_cast<std::size_t>(v_head * at_once)),
                .v_is_finite = std::vector<std::uint8_t>(static_cast<std::size_t>(n_j * at_once)),
                .k_head = k_head,
                .v_head = v_head,
                .n_j = n_j};
  for (std::int32_t begin = 0; begin < heads; begin += at_once)
    run_heads(kernel, args, {.begin = begin, .end = std::min(begin + at_once, heads)}, packed);
  return true;
}

}  // namespace lacuna::host
