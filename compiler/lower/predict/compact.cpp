// compact: lists of attend's tiles from the kept bits, and an order of the rows, longest list
// first.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

constexpr const char* kCompactHeader = "select/compact.cuh";

/// Lists that a predictor makes; a row of them has room for all tiles.
constexpr Argument kMadeLists[] = {
    {"list_indices", FieldSource::kWorkspace, "list_indices"},
    {"list_counts", FieldSource::kWorkspace, "list_counts"},
    {"list_capacity", FieldSource::kValue, "k_tiles"},
};

Chosen<int> order_smem() {
  return {order_smem_bytes(kBlockThreads), Origin::kDerived,
          "(2 * " + std::to_string(kOrderBins) + " lengths that are counted + " +
              std::to_string(kBlockThreads) + " of the block's rows + " +
              std::to_string(kReduceWords) + ") * 4"};
}

Kernel list_kernel(const Plan& plan, const Compact& compact) {
  const Select* select = last_step(plan.program).select;
  const std::string q_tiles = tiles_of(Tensor::kQ, compact.tile_q);
  const std::string k_tiles = tiles_of(Tensor::kK, compact.tile_k);
  const std::string heads = all_heads(Tensor::kQ);
  Kernel kernel{
      .name = "compact",
      .because = "attend takes tiles from lists",
      .header = kCompactHeader,
      .function = "compact_lists",
      .config = {integer("kKeepQ", compact.keep_q, "/predictor/tile/q"),
                 integer("kKeepK", compact.keep_k, "/predictor/tile/k"),
                 integer("kTileQ", compact.tile_q, "/tile/q"),
                 integer("kTileK", compact.tile_k, "/tile/k"), has_mask(compact.mask),
                 boolean("kSharedHeads", select != nullptr && select->shared_heads,
                         "/predictor/heads")},
      .grid = {ceil_divide(blocks_over(Tensor::kQ, compact.tile_q), kBlockWarps),
               "a warp for each work tile of attend"},
      .threads = block_threads(),
      .smem_bytes = no_smem(),
      .operands = {"kept"},
      .slots = {{"list_indices", units(heads, "(" + q_tiles + ") * (" + k_tiles + ")", kWordBytes)},
                {"list_counts", units(heads, q_tiles, kWordBytes)}},
      .needs_keys = false};
  const Attend& attend = attend_of(plan.program);
  add_pair_fields(attend, kernel.config);
  if (attend.pairs) kernel.operands.push_back("tile_classes");
  kernel.arguments.assign(std::begin(kMadeLists), std::end(kMadeLists));
  return kernel;
}

Kernel order_kernel(const Plan& plan, const Compact& compact) {
  const int queries = compact.tile_q * plan.attend.work_tiles.value;
  return {.name = "order_rows",
          .because = "blocks of attend take the longest lists first",
          .header = kCompactHeader,
          .function = "order_rows",
          .config = {integer("kWorkTiles", plan.attend.work_tiles.value, kNoField, Origin::kDerived,
                             "rows that a block of attend takes together")},
          .grid = {ceil_divide(blocks_over(Tensor::kQ, queries), kBlockThreads),
                   "a thread for each piece of work of attend"},
          .threads = block_threads(),
          .smem_bytes = order_smem(),
          .operands = {"list_counts"},
          .slots = {{"row_order", units(all_heads(Tensor::kQ), tiles_of(Tensor::kQ, compact.tile_q),
                                        kWordBytes)}},
          .needs_keys = false};
}

}  // namespace

Kernels lower_compact(const Plan& plan) {
  const auto* compact = find_op<Compact>(plan.program);
  if (compact == nullptr) return {};
  if (has_sequence_tiles(plan)) return {list_kernel(plan, *compact)};  // which come as scheduled
  return {list_kernel(plan, *compact), order_kernel(plan, *compact)};
}

}  // namespace lacuna
