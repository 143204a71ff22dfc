#include "compiler/emit/stage_facts.hpp"

#include <algorithm>
#include <span>

#include "compiler/expr/parse.hpp"
#include "compiler/expr/sole_condition.hpp"
#include "compiler/expr/trend.hpp"

namespace lacuna {
namespace {

/// What an estimate says of a tile, but for its rank; and what else tells it from others.
constexpr Variable kEstimateVariables[] = {Variable::kScore, Variable::kP, Variable::kMassBefore};
constexpr Variable kPlaceVariables[] = {Variable::kSimilarK, Variable::kJ, Variable::kK0,
                                        Variable::kK1};

constexpr int kRowsThatDecideKeys = 16;  ///< of a matrix product

bool uses_any(const Expr& expr, std::span<const Variable> variables) {
  return std::ranges::any_of(variables, [&](Variable variable) { return uses(expr, variable); });
}

/// The caller's tensor behind a value, through permutations. Other values are none.
const Input* input_behind(const Program& program, int value) {
  while (value >= 0) {
    const Op& op = definition_of(program, value).op;
    if (const Input* input = std::get_if<Input>(&op)) return input;
    const Permute* permute = std::get_if<Permute>(&op);
    value = permute != nullptr ? permute->x : -1;
  }
  return nullptr;
}

TokenOps* ops_of(StageFacts& facts, int value) {
  const Input* input = input_behind(facts.plan.program, value);
  if (input == nullptr) return nullptr;
  return input->name == "q" ? &facts.q : input->name == "k" ? &facts.k : nullptr;
}

/// The quantisation whose values or scales this is.
const Quantise* quantise_of(const Program& program, int value) {
  return value < 0 ? nullptr : std::get_if<Quantise>(&definition_of(program, value).op);
}

/// Sorts the ops on tokens by the tensor they read.
void sort_op(StageFacts& facts, const Op& op) {
  const auto keep = [&]<class T>(const T* found, const T* TokenOps::*member) {
    if (found == nullptr) return;
    if (TokenOps* ops = ops_of(facts, found->x)) ops->*member = found;
  };
  keep(std::get_if<Smooth>(&op), &TokenOps::smooth);
  keep(std::get_if<Summarise>(&op), &TokenOps::summary);
  keep(std::get_if<Similarity>(&op), &TokenOps::similarity);
  keep(std::get_if<Project>(&op), &TokenOps::bias);
}

/// Integers that attend and the estimate both read are made once.
void find_quantised(StageFacts& facts) {
  const Program& program = facts.plan.program;
  facts.q.quantise = quantise_of(program, facts.attend.q);
  facts.k.quantise = quantise_of(program, facts.attend.k);
  if (facts.estimate == nullptr) return;
  const auto only_estimate = [](const Quantise* found, const Quantise* attends) {
    return found != nullptr && attends != nullptr && *found == *attends ? nullptr : found;
  };
  facts.q.estimate_quantise =
      only_estimate(quantise_of(program, facts.estimate->q), facts.q.quantise);
  facts.k.estimate_quantise =
      only_estimate(quantise_of(program, facts.estimate->k), facts.k.quantise);
}

std::optional<Expr> find_rank_condition(const StageFacts& facts) {
  if (facts.select == nullptr || facts.estimate == nullptr) return std::nullopt;
  const Expr& keep = facts.select->keep;
  if (uses_any(keep, kEstimateVariables)) return std::nullopt;
  std::optional<Expr> condition = sole_condition(keep, Variable::kRank);
  if (!condition || uses_any(*condition, kPlaceVariables) ||
      trend_of(*condition, Variable::kRank) != Trend::kFalls)
    return std::nullopt;
  return condition;
}

std::optional<Expr> find_p_condition(const StageFacts& facts) {
  if (facts.select == nullptr || !facts.estimates_pairs()) return std::nullopt;
  std::optional<Expr> condition = sole_condition(facts.select->keep, Variable::kP);
  // How many tiles are visible is counted while they are estimated.
  if (!condition || uses_any(*condition, kPlaceVariables) || uses(*condition, Variable::kVisible))
    return std::nullopt;
  return condition;
}

}  // namespace

std::string_view name_of(Tensor tensor) {
  return tensor == Tensor::kQ ? "q" : tensor == Tensor::kK ? "k" : "v";
}

bool StageFacts::keeps_by_place() const {
  return keeps_first() && uses_any(select->keep, kPlaceVariables);
}

bool StageFacts::orders_tiles() const {
  if (select == nullptr || keeps_first()) return false;
  return uses(select->keep, Variable::kRank) || uses(select->keep, Variable::kMassBefore);
}

bool StageFacts::decides_keys() const {
  return estimate != nullptr && estimate->rows.kind == SummaryKind::kMean &&
         estimate->columns.kind == SummaryKind::kTokens && estimate->tile_k == 1 &&
         !orders_tiles() && !keeps_first();
}

int StageFacts::rows_of_estimate() const {
  return decides_keys() ? kRowsThatDecideKeys : estimate_rows(*estimate);
}

StageFacts find_stages(const Plan& plan) {
  const Program& program = plan.program;
  StageFacts facts{.plan = plan, .attend = attend_of(program)};
  facts.quantise_values = find_op<QuantiseValues>(program);
  facts.estimate = find_op<Estimate>(program);
  facts.select = find_op<Select>(program);
  facts.compact = find_op<Compact>(program);
  facts.permutes = find_op<Permute>(program) != nullptr;
  for (const Node& node : program.nodes) {
    facts.has_stages |=
        !std::holds_alternative<Input>(node.op) && !std::holds_alternative<Attend>(node.op);
    sort_op(facts, node.op);
  }
  find_quantised(facts);
  facts.rank_condition = find_rank_condition(facts);
  facts.p_condition = find_p_condition(facts);
  return facts;
}

int groups_in_tile(const Quantise& quantise, Tensor tensor) {
  const bool is_query = tensor == Tensor::kQ;
  switch (quantise.group) {
    case QuantGroup::kBlock:
      return 1;
    case QuantGroup::kWarp:
      return is_query ? quantise.tile / 16 : 1;
    case QuantGroup::kThread:
      return is_query ? quantise.tile / 2 : quantise.tile / 8;
  }
  return 0;
}

}  // namespace lacuna
