// Chooses the order in which a work tile visits its keys.
//
// A softmax that goes on from tile to tile scales down what it has each time a row outgrows its
// maximum so far. Where the score formula rises along the keys, as a penalty on distance does, it
// would do so again and again from the first key on, and never from the last one on. What a gate
// decides depends on the order, so with a gate the order is that of the spec alone.
#include "compiler/passes/target/choose_order.hpp"

#include "compiler/expr/builder.hpp"
#include "compiler/expr/parts/score_parts.hpp"
#include "compiler/spec/declared_ranges.hpp"

namespace lacuna {
namespace {

/// slope < 0, which NaN is not either
Expr descends(const Expr& slope) {
  ExprBuilder builder;
  const int root = builder.copy_all(slope.nodes);
  const int zero = builder.literal(slope.nodes.back().type, 0);
  return builder.extract(builder.make(ExprOp::kLess, root, zero), slope.parameters);
}

/// Whether scores grow along the keys, whatever the parameters are within their ranges.
bool rises_along_keys(const Expr& score, const std::vector<ParamSpec>& params) {
  if (score.empty()) return false;
  const ScoreParts parts = split_score(score);
  if (parts.slope.empty()) return false;
  const Expr condition = descends(parts.slope);
  return !decided(condition, declared_ranges(condition, params)).value_or(true);
}

}  // namespace

Chosen<TileOrder> default_order(const Program& program, const VariantSpec& spec, bool gathers) {
  const Attend& attend = attend_of(program);
  if (!gathers && !attend.gate && rises_along_keys(attend.score, spec.params)) {
    return {TileOrder::kDescending, Origin::kDerived,
            "scores rise along the keys: the largest come first"};
  }
  return {TileOrder::kAscending, Origin::kDefault, "keys as they lie in memory"};
}

}  // namespace lacuna
