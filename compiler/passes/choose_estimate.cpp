#include "compiler/passes/choose_estimate.hpp"

#include <algorithm>

#include "compiler/expr/parse.hpp"
#include "compiler/target/estimate_block.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

/// Keys of a tile: whole groups of keys that one lane has, and a divisor of a step's 128.
constexpr int kTileKeys[] = {32, 64, 128};
constexpr int kHeadDims[] = {64, 128};  ///< rows of a whole permutation of shared memory

/// How a value moves as the variable grows, with everything else held still.
enum class Trend : std::uint8_t { kStill, kRises, kFalls, kAnyhow };

Trend reversed(Trend trend) {
  if (trend == Trend::kRises) return Trend::kFalls;
  return trend == Trend::kFalls ? Trend::kRises : trend;
}
/// Of what rises (not falls) with both.
Trend merged(Trend a, Trend b) {
  if (a == Trend::kStill || a == b) return b;
  return b == Trend::kStill ? a : Trend::kAnyhow;
}

/// `of`: the trend of a node's n-th child.
template <class Of>
Trend trend_of(const ExprNode& node, Variable variable, Of of) {
  switch (node.op) {
    case ExprOp::kVariable:
      return node.symbol == static_cast<std::uint16_t>(variable) ? Trend::kRises : Trend::kStill;
    case ExprOp::kLiteral:
      return Trend::kStill;
    case ExprOp::kNegate:
    case ExprOp::kNot:
      return reversed(of(0));
    case ExprOp::kSubtract:
    case ExprOp::kGreater:
    case ExprOp::kGreaterEqual:
      return merged(of(0), reversed(of(1)));
    case ExprOp::kLess:
    case ExprOp::kLessEqual:
      return merged(reversed(of(0)), of(1));
    case ExprOp::kAdd:
    case ExprOp::kAnd:
    case ExprOp::kOr:
    case ExprOp::kMin:
    case ExprOp::kMax:
      return merged(of(0), of(1));
    case ExprOp::kToF32:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kSqrt:
    case ExprOp::kTanh:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
      return of(0);
    default: {  // factors may be negative, indices and conditions anything
      bool is_still = true;
      for (int n = 0; n < 3 && node.children[static_cast<std::size_t>(n)] >= 0; ++n)
        is_still = is_still && of(n) == Trend::kStill;
      return is_still ? Trend::kStill : Trend::kAnyhow;
    }
  }
}

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
  if (!changes_once(keep, Variable::kP))
    return "predictor.keep: a bound of p says nothing if the rule may change twice as p grows";
  return "";
}

}  // namespace

bool changes_once(const Expr& rule, Variable variable) {
  std::vector<Trend> trends;
  for (const ExprNode& node : rule.nodes) {
    trends.push_back(trend_of(node, variable, [&](int n) {
      const std::int32_t child = node.children[static_cast<std::size_t>(n)];
      return trends[static_cast<std::size_t>(child)];
    }));
  }
  return trends.empty() || trends.back() != Trend::kAnyhow;
}

Chosen<AttendFamily> choose_estimate_family(const Program& program, const PassContext& context) {
  const auto* estimate = find_op<Estimate>(program);
  if (estimate == nullptr || context.target.kind == TargetKind::kCpu) return {};
  std::string against = objection(program, *estimate, context);
  if (!against.empty()) return {AttendFamily::kMma, Origin::kDerived, std::move(against)};
  return {AttendFamily::kWgmma, Origin::kDerived, "integers, reduced to their largest by bounds"};
}

}  // namespace lacuna
