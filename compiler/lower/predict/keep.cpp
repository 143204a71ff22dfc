#include "compiler/lower/predict/keep.hpp"

#include <algorithm>
#include <span>

#include "compiler/expr/bounds/monotonicity.hpp"
#include "compiler/expr/bounds/sole_condition.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/predict/estimate_family.hpp"

namespace lacuna {
namespace {

/// What an estimate says of a tile, but for its rank; and what else tells it from others.
constexpr Variable kEstimateVariables[] = {Variable::kScore, Variable::kP, Variable::kMassBefore,
                                           Variable::kPMax};
constexpr Variable kPlaceVariables[] = {Variable::kSimilarK, Variable::kJ, Variable::kK0,
                                        Variable::kK1};

bool uses_any(const Expr& expr, std::span<const Variable> variables) {
  return std::ranges::any_of(variables, [&](Variable variable) { return uses(expr, variable); });
}

std::optional<Expr> find_rank_condition(const Expr& keep) {
  if (uses_any(keep, kEstimateVariables)) return std::nullopt;
  std::optional<Expr> condition = sole_condition(keep, Variable::kRank);
  if (!condition || uses_any(*condition, kPlaceVariables) ||
      monotonicity_of(*condition, Variable::kRank) != Monotonicity::kFalls)
    return std::nullopt;
  return condition;
}

std::optional<Expr> find_p_condition(const Expr& keep) {
  std::optional<Expr> condition = sole_condition(keep, Variable::kP);
  // How many tiles are visible is counted while they are estimated.
  if (!condition || uses_any(*condition, kPlaceVariables) || uses(*condition, Variable::kVisible))
    return std::nullopt;
  return condition;
}

}  // namespace

KeepQuestion keep_question(const Plan& plan, const PredictStep& step) {
  const auto [select, estimate] = step;
  KeepQuestion question;
  question.step = select->within >= 0                        ? "kWithin"
                  : select->joins >= 0                       ? "kUnion"
                  : select == last_step(plan.program).select ? "kOnly"
                                                             : "kBefore";
  const Expr& keep = select->keep;
  const auto reads = [&](Variable variable) { return uses(keep, variable); };
  const auto excludes_by = [&, estimate = estimate](Variable variable) {
    return estimate != nullptr && uses(estimate->exclude, variable);
  };
  question.score = reads(Variable::kScore);
  question.mass = reads(Variable::kMassBefore);
  question.similar_q = reads(Variable::kSimilarQ) || excludes_by(Variable::kSimilarQ);
  question.similar_k = reads(Variable::kSimilarK) || excludes_by(Variable::kSimilarK);
  question.p_max = reads(Variable::kPMax);
  question.ranks_tiles = reads(Variable::kRank) || question.mass || question.p_max;
  question.reads_place = uses_any(keep, kPlaceVariables);
  if (estimate == nullptr) return question;
  if (select->joins < 0) question.rank_condition = find_rank_condition(keep);
  const bool is_last = estimate->rows.kind == SummaryKind::kLast;
  question.keeps_first = question.rank_condition && !is_last;
  question.keeps_first_in_order = question.rank_condition && is_last;
  if (estimates_pairs(plan, step)) question.p_condition = find_p_condition(keep);
  return question;
}

std::vector<ConfigField> keep_config(const KeepQuestion& keep) {
  constexpr const char* kPointer = "/predictor/keep";
  std::vector<ConfigField> fields = {enumerator("Step", "kStep", keep.step, "/predictor"),
                                     boolean("kUsesScore", keep.score, kPointer),
                                     boolean("kUsesMass", keep.mass, kPointer),
                                     boolean("kOrdersTiles", keep.orders_tiles(), kPointer),
                                     boolean("kKeepsFirst", keep.keeps_first, kPointer)};
  if (keep.keeps_first) fields.push_back(boolean("kKeepsByPlace", keep.reads_place, kPointer));
  if (keep.p_max) fields.push_back(boolean("kUsesPMax", true, kPointer));
  fields.push_back(boolean("kUsesSimilarQ", keep.similar_q, kPointer));
  fields.push_back(boolean("kUsesSimilarK", keep.similar_k, kPointer));
  return fields;
}

}  // namespace lacuna
