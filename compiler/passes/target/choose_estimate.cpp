#include "compiler/passes/target/choose_estimate.hpp"

#include <algorithm>

#include "compiler/expr/bounds/monotonicity.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/target/estimate_block.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

constexpr int kByteBits = 8;            ///< and fewer: the elements of an integer product
constexpr int kHeadDims[] = {64, 128};  ///< rows of a whole permutation of shared memory
/// Keys of a tile. Of integers: whole groups of keys that one lane has, and a divisor of a step's
/// 256. Of tokens as they are: a divisor of a warp's 16.
constexpr int kIntegerTileKeys[] = {32, 64, 128}, kExactTileKeys[] = {1, 2, 4, 8, 16};
/// Where integers are summed: whole runs of 16 to 64 keys, and one or two warpgroups.
constexpr int kSummedTileKeys[] = {16, 32, 64, 128}, kSummedTileQueries[] = {64, 128};

std::string against_tile(const char* field, int tile, const char* reason) {
  return std::string("predictor.tile.") + field + " = " + std::to_string(tile) + ": " + reason;
}

/// What keeps integers from being summed and reduced in one walk along the keys.
std::string objection_to_sums(const Estimate& estimate) {
  if (std::ranges::count(kSummedTileQueries, estimate.tile_q) == 0)
    return against_tile("q", estimate.tile_q, "64 or 128 queries");
  if (std::ranges::count(kSummedTileKeys, estimate.tile_k) == 0)
    return against_tile("k", estimate.tile_k, "16, 32, 64 or 128 keys");
  return "";
}

/// What keeps integers from being bounded.
std::string objection_to_bounds(const Expr& keep, const Estimate& estimate) {
  if (estimate.tile_q % kWarpgroupRows != 0 || kTokenPairRows % estimate.tile_q != 0)
    return against_tile("q", estimate.tile_q, "a warpgroup has 64 rows");
  if (std::ranges::count(kIntegerTileKeys, estimate.tile_k) == 0)
    return against_tile("k", estimate.tile_k, "32, 64 or 128 keys");
  if (!has_exact_lse(estimate.normalise))
    return "weights of integers are relative to a sum: that of their softmax, or one that is known "
           "before";
  if (monotonicity_of(keep, Variable::kP) == Monotonicity::kUnknown)
    return "predictor.keep: a bound of p says nothing if the rule may change twice as p grows";
  return "";
}

/// What keeps tokens as they are from being reduced along the queries of a product.
std::string objection_to_columns(const Estimate& estimate) {
  if (estimate.tile_q % kWarpgroupRows != 0 || kExactColumns % estimate.tile_q != 0)
    return against_tile("q", estimate.tile_q, "64 or 128 queries are columns of a product");
  if (std::ranges::count(kExactTileKeys, estimate.tile_k) == 0)
    return against_tile("k", estimate.tile_k, "a warp has 16 keys, of whole tiles");
  if (estimate.normalise == Normalise::kNone) return "plain logits are relative to nothing";
  if (estimate.normalise == Normalise::kRowMax) return "rows are relative to a sum";
  return "";
}

/// What keeps cells from being compared by wgmma.
std::string objection_to_cells(const Program& program, const Estimate& estimate) {
  if (program.head_dim % kCellDepth != 0)
    return "head_dim " + std::to_string(program.head_dim) + ": multiples of " +
           std::to_string(kCellDepth) + " are laid out";
  const bool are_means = estimate.rows.kind == SummaryKind::kCellMean;
  if (cell_columns(true, are_means) % (estimate.tile_k / estimate.columns.count) != 0)
    return against_tile("k", estimate.tile_k, "a step has 128 or 256 cells, of whole tiles");
  return "";
}

/// What keeps tokens from wgmma.
std::string objection_to_tokens(const Program& program, const PredictStep& step) {
  const Estimate& estimate = *step.estimate;
  const auto reads = [&](Variable variable) { return uses(step.select->keep, variable); };
  if (step.select != last_step(program).select) return "one of several steps";
  if (estimate.rows.kind != SummaryKind::kTokens || estimate.columns.kind != SummaryKind::kTokens)
    return "wgmma compares tokens with tokens, or cells with cells";
  if (std::ranges::count(kHeadDims, program.head_dim) == 0)
    return "head_dim " + std::to_string(program.head_dim) + ": 64 and 128 are laid out";
  if (!estimate.exclude.empty()) return "predictor.estimate.exclude: asked before each product";
  if (reads(Variable::kScore)) return "predictor.keep: reads a tile's largest logit";
  const bool has_integers = estimate.bits <= kByteBits;
  if (!has_integers && program.batch == BatchLayout::kPages)
    return "keys in pages: its loads take rows, one behind the other";
  if (has_integers && estimate.normalise == Normalise::kSoftmax) return objection_to_sums(estimate);
  if (estimate.reduce != Reduce::kMax) return "wgmma finds the largest weight of a tile";
  if (reads(Variable::kRank) || reads(Variable::kMassBefore) || reads(Variable::kPMax))
    return "predictor.keep: reads more than p";
  if (predict_steps(program).size() > 1) return "one of several steps";
  return has_integers ? objection_to_bounds(step.select->keep, estimate)
                      : objection_to_columns(estimate);
}

/// What keeps an estimate from wgmma; "" if nothing.
std::string objection(const Program& program, const PredictStep& step, const PassContext& context) {
  const Estimate& estimate = *step.estimate;
  if (context.family == AttendFamily::kMma) return "asked for by the caller";
  if (!context.target.has_wgmma) return context.target.name + " has no wgmma";
  if (estimate.is_indexed()) return "predictor.estimate.index: products of several heads are added";
  if (!estimate.dims.empty()) return "predictor.estimate.dims: wgmma multiplies whole rows";
  return has_cells(estimate.rows) ? objection_to_cells(program, estimate)
                                  : objection_to_tokens(program, step);
}

}  // namespace

Chosen<AttendFamily> choose_estimate_family(const Program& program, const PredictStep& step,
                                            const PassContext& context) {
  const Estimate* estimate = step.estimate;
  if (estimate == nullptr || context.target.kind == TargetKind::kCpu) return {};
  std::string against = objection(program, step, context);
  if (!against.empty()) return {AttendFamily::kMma, Origin::kDerived, std::move(against)};
  const char* reason = has_cells(estimate->rows) ? "a warpgroup takes 64 cells of queries at a time"
                       : estimate->bits > kByteBits
                           ? "tokens as they are, each key reduced within a lane"
                       : estimate->normalise == Normalise::kSoftmax
                           ? "integers, summed and reduced to their largest in one walk"
                           : "integers, reduced to their largest by bounds";
  return {AttendFamily::kWgmma, Origin::kDerived, reason};
}

}  // namespace lacuna
