// An estimate of tokens by wgmma: integers by bounds of their products, or tokens as they are. A
// kernel before it finds what the weights of each row are relative to, unless the caller knows it.
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/predict/estimate_kernels.hpp"
#include "compiler/target/estimate_block.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

Chosen<int> wgmma_estimate_threads() {
  return {kTokenPairThreads, Origin::kDefault, "four warpgroups compute, one loads"};
}

/// Of warpgroups with roles.
Chosen<int> consumers_block() {
  return {1, Origin::kDerived, "the warpgroup that loads then hands most of its own to the others"};
}

ShapeExpr wgmma_estimate_grid() {
  return {blocks_over(Tensor::kQ, kTokenPairRows),
          "one for each " + std::to_string(kTokenPairRows) + " queries of a head"};
}

/// What weights of a row are relative to, of each row.
Slot references() {
  return {"scores", units(all_heads(Tensor::kQ), padded_length(Tensor::kQ), kWordBytes)};
}

bool has_reference(const EstimateParts& parts) {
  return parts.estimate.normalise != Normalise::kPreviousLse;
}

void add_decision(const EstimateParts& parts, Kernel& kernel) {
  add_token_operands(parts, kernel);
  if (has_reference(parts)) kernel.operands.push_back("scores");
  kernel.slots.push_back(kept_slot(parts.plan, parts.select));
}

std::vector<ConfigField> token_pair_config(const EstimateParts& parts) {
  std::vector<ConfigField> fields = token_config(parts);
  fields.push_back(boolean("kHasThreshold", parts.keep.p_condition.has_value(), "/predictor/keep"));
  return fields;
}

/// Of tokens as they are: the planner has ruled out the rest of what an estimate may say.
std::vector<ConfigField> exact_config(const EstimateParts& parts) {
  const Estimate& estimate = parts.estimate;
  constexpr const char* kKeep = "/predictor/keep";
  return {predictor_tile_q(estimate.tile_q),
          predictor_tile_k(estimate.tile_k),
          enumerator("Normalise", "kNormalise", normalise_name(estimate.normalise),
                     "/predictor/estimate/normalise"),
          number("kTemperature", estimate.temperature, "/predictor/estimate/temperature"),
          has_mask(estimate.mask),
          enumerator("Step", "kStep", parts.keep.step, "/predictor"),
          boolean("kUsesSimilarQ", parts.keep.similar_q, kKeep),
          boolean("kUsesSimilarK", parts.keep.similar_k, kKeep)};
}

/// Few keys to wait for and much to wait: as many as there is shared memory for.
Chosen<int> reference_blocks(const EstimateParts& parts) {
  if (parts.estimate.tile_q != kWarpgroupRows) return one_resident_block();
  if (parts.plan.program.batch == BatchLayout::kPages)
    return {3, Origin::kDerived, "few keys and long waits, but pages take registers"};
  return {4, Origin::kDerived, "few keys and long waits, so as many as shared memory holds"};
}

/// As many as fit if each thread has 96 registers, or 128 in a block with one warpgroup. Those of a
/// sequence hold what of one shape are constants of the launch: beside the sums of two warpgroups
/// that is too much.
Chosen<int> softmax_blocks(const EstimateParts& parts) {
  if (parts.estimate.tile_q == kWarpgroupRows)
    return {3, Origin::kDerived, "the sums of 128 keys are in registers"};
  if (parts.plan.program.batch != BatchLayout::kUniform)
    return {1, Origin::kDerived, "registers hold sums of 128 keys, and a sequence's arguments"};
  return {2, Origin::kDerived, "the sums of 128 keys are in registers"};
}

ShapeExpr softmax_grid(const EstimateParts& parts) {
  const int most = softmax_blocks(parts).value;
  const std::string rows = at_most(blocks_over(Tensor::kQ, parts.estimate.tile_q), kMostBlocks);
  const std::string resident = std::to_string(most);
  return {resident + " * min((" + rows + " + " + std::to_string(most - 1) + ") // " + resident +
              ", sm_count)",
          "one for each query tile, but no more than fit at once; each takes one after the other"};
}

/// Weights of rows, for each block of the grid. Of sequences, which have as many blocks each, for
/// as many blocks as run at once: these take what is free, and so `next_estimate` says who has
/// which.
void add_softmax_scratch(const EstimateParts& parts, Kernel& kernel) {
  const bool is_uniform = parts.plan.program.batch == BatchLayout::kUniform;
  const SlotRegion region = is_uniform ? SlotRegion::kOwn : SlotRegion::kBatch;
  const std::string at_once = std::to_string(softmax_blocks(parts).value) + " * sm_count";
  const std::string blocks = "(" + (is_uniform ? kernel.grid.expr : at_once) + ")";
  const bool has_planes = parts.keep.orders_tiles() || parts.keep.keeps_first;
  const int planes = has_planes ? softmax_planes(parts.keep.orders_tiles()) : 0;
  const int tile_bytes = (token_softmax_weights(parts.estimate) + planes) * kWordBytes;
  // Laid out for the longest sequence, of which kernels know the padded keys.
  const std::string tiles =
      is_uniform ? keep_k_tiles(parts.select)
                 : ceil_divide("(" + padded_length(Tensor::kK) + ")", parts.estimate.tile_k);
  kernel.slots.push_back({"row_weights", units(blocks, tiles, tile_bytes), false, region});
  kernel.slots.push_back({"next_estimate",
                          is_uniform ? "1" : units("1", "n_sequences + " + blocks, kWordBytes),
                          true, region});
  kernel.sizes.push_back({"softmax_blocks", blocks});
}

Chosen<int> exact_smem(int head_dim) {
  return {estimate_exact_smem_bytes(head_dim), Origin::kDerived,
          estimate_exact_smem_formula(head_dim)};
}

}  // namespace

Kernels token_pair_kernels(const EstimateParts& parts) {
  const int head_dim = parts.plan.program.head_dim;
  Kernels kernels;
  if (has_reference(parts)) {
    Kernel kernel{.name = "reference",
                  .because = "weights are relative to the mass of their row",
                  .header = "select/tokens/reference.cuh",
                  .function = "predict_reference",
                  .config = token_pair_config(parts),
                  .grid = {blocks_over(Tensor::kQ, parts.select.tile_q),
                           "one for each query tile of the predictor"},
                  .threads = block_threads(),
                  .smem_bytes = {estimate_block_smem_bytes(parts.estimate, parts.rows, head_dim),
                                 Origin::kDerived,
                                 estimate_block_smem_formula(parts.estimate, parts.rows, head_dim)},
                  .resident_blocks = reference_blocks(parts),
                  .slots = {references()}};
    add_token_operands(parts, kernel);
    kernels.push_back(std::move(kernel));
  }
  Kernel kernel{.name = "estimate",
                .because = "integer queries are compared with integer keys",
                .header = "select/token_pairs/tokens_wgmma.cuh",
                .function = "predict_token_pairs",
                .config = token_pair_config(parts),
                .grid = wgmma_estimate_grid(),
                .threads = wgmma_estimate_threads(),
                .smem_bytes = {token_pair_smem_bytes(head_dim), Origin::kDerived,
                               token_pair_smem_formula(head_dim)},
                .resident_blocks = consumers_block()};
  add_decision(parts, kernel);
  kernels.push_back(std::move(kernel));
  return kernels;
}

Kernels token_softmax_kernels(const EstimateParts& parts) {
  const Estimate& estimate = parts.estimate;
  const int head_dim = parts.plan.program.head_dim;
  const int consumers = token_softmax_consumers(estimate);
  Kernel kernel{.name = "estimate",
                .because = "integer queries are compared with integer keys",
                .header = "select/token_softmax/token_softmax.cuh",
                .function = "predict_token_softmax",
                .config = token_config(parts),
                .grid = softmax_grid(parts),
                .threads = {consumers + kWarpThreads, Origin::kDerived,
                            "a warpgroup for each 64 queries of a tile, and a warp that loads"},
                .smem_bytes = {token_softmax_smem_bytes(estimate, head_dim), Origin::kDerived,
                               token_softmax_smem_formula(estimate, head_dim)},
                .resident_blocks = softmax_blocks(parts)};
  kernel.config.push_back(integer("kDecidingThreads", consumers, kNoField, Origin::kDerived,
                                  "those of the warpgroups that compute"));
  add_softmax_scratch(parts, kernel);
  add_token_operands(parts, kernel);
  kernel.slots.push_back(kept_slot(parts.plan, parts.select));
  return {kernel};
}

Kernels exact_kernels(const EstimateParts& parts) {
  const int head_dim = parts.plan.program.head_dim;
  Kernels kernels;
  if (has_reference(parts)) {
    Kernel kernel{.name = "reference",
                  .because = "weights are relative to the mass of their row",
                  .header = "select/exact/exact_sums.cuh",
                  .function = "predict_exact_sums",
                  .config = exact_config(parts),
                  .grid = wgmma_estimate_grid(),
                  .threads = wgmma_estimate_threads(),
                  .smem_bytes = exact_smem(head_dim),
                  .resident_blocks = consumers_block(),
                  .slots = {references()}};
    add_token_operands(parts, kernel);
    kernels.push_back(std::move(kernel));
  }
  Kernel kernel{.name = "estimate",
                .because = "queries are compared with keys",
                .header = "select/exact/exact_largest.cuh",
                .function = "predict_exact_largest",
                .config = exact_config(parts),
                .grid = wgmma_estimate_grid(),
                .threads = wgmma_estimate_threads(),
                .smem_bytes = exact_smem(head_dim),
                .resident_blocks = consumers_block()};
  add_decision(parts, kernel);
  kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace lacuna
