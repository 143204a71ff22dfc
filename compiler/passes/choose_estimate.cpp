#include "compiler/passes/choose_estimate.hpp"

#include <algorithm>

#include "compiler/expr/parse.hpp"
#include "compiler/expr/trend.hpp"
#include "compiler/target/estimate_block.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

/// Keys of a tile: whole groups of keys that one lane has, and a divisor of a step's 128.
constexpr int kTileKeys[] = {32, 64, 128};
constexpr int kHeadDims[] = {64, 128};  ///< rows of a whole permutation of shared memory

/// What keeps an estimate from wgmma; "" if nothing.
std::string objection(const Program& program, const Estimate& estimate,
                      const PassContext& context) {
  const Expr& keep = find_op<Select>(program)->keep;
  const auto reads = [&](Variable variable) { return uses(keep, variable); };
  if (context.family == AttendFamily::kMma) return "asked for by the caller";
  if (!context.target.has_wgmma) return context.target.name + " has no wgmma";
  if (estimate.rows.kind != SummaryKind::kTokens || estimate.columns.kind != SummaryKind::kTokens)
    return "wgmma compares tokens with tokens";
  if (estimate.bits > 8)
    return std::to_string(estimate.bits) + " bits: wgmma compares integers of 8 or 4";
  if (std::ranges::count(kHeadDims, program.head_dim) == 0)
    return "head_dim " + std::to_string(program.head_dim) + ": 64 and 128 are laid out";
  if (estimate.tile_q % kWarpgroupRows != 0 || kEstimatePairsRows % estimate.tile_q != 0)
    return "predictor.tile.q = " + std::to_string(estimate.tile_q) + ": a warpgroup has 64 rows";
  if (std::ranges::count(kTileKeys, estimate.tile_k) == 0)
    return "predictor.tile.k = " + std::to_string(estimate.tile_k) + ": 32, 64 or 128 keys";
  if (estimate.reduce != Reduce::kMax) return "wgmma finds the largest weight of a tile";
  if (estimate.normalise != Normalise::kLse && estimate.normalise != Normalise::kPreviousLse)
    return "weights of integers are relative to a sum that is known before";
  if (!estimate.exclude.empty()) return "predictor.estimate.exclude: asked before each product";
  if (reads(Variable::kScore) || reads(Variable::kRank) || reads(Variable::kMassBefore))
    return "predictor.keep: reads more than a bound of p";
  if (trend_of(keep, Variable::kP) == Trend::kAnyhow)
    return "predictor.keep: a bound of p says nothing if the rule may change twice as p grows";
  return "";
}

}  // namespace

Chosen<AttendFamily> choose_estimate_family(const Program& program, const PassContext& context) {
  const auto* estimate = find_op<Estimate>(program);
  if (estimate == nullptr || context.target.kind == TargetKind::kCpu) return {};
  std::string against = objection(program, *estimate, context);
  if (!against.empty()) return {AttendFamily::kMma, Origin::kDerived, std::move(against)};
  return {AttendFamily::kWgmma, Origin::kDerived, "integers, reduced to their largest by bounds"};
}

}  // namespace lacuna
