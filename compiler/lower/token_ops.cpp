#include "compiler/lower/token_ops.hpp"

namespace lacuna {
namespace {

/// The caller's tensor behind a value, through permutations and means. Other values are none.
const Input* input_behind(const Program& program, int value) {
  while (value >= 0) {
    const Op& op = definition_of(program, value).op;
    if (const Input* input = std::get_if<Input>(&op)) return input;
    const Permute* permute = std::get_if<Permute>(&op);
    const Means* means = std::get_if<Means>(&op);
    value = permute != nullptr ? permute->x : means != nullptr ? means->x : -1;
  }
  return nullptr;
}

/// The quantisation whose values or scales this is.
const Quantise* quantise_of(const Program& program, int value) {
  return value < 0 ? nullptr : std::get_if<Quantise>(&definition_of(program, value).op);
}

}  // namespace

TokenOps token_ops(const Program& program, Tensor tensor) {
  TokenOps ops;
  for (const Node& node : program.nodes) {
    const auto keep = [&]<class T>(const T* found, const T* TokenOps::*member) {
      if (found == nullptr) return;
      const Input* input = input_behind(program, found->x);
      if (input != nullptr && input->name == name_of(tensor)) ops.*member = found;
    };
    keep(std::get_if<Smooth>(&node.op), &TokenOps::smooth);
    const auto* summarise = std::get_if<Summarise>(&node.op);
    const bool has_bounds = summarise != nullptr && summarise->bounds;
    keep(summarise, has_bounds ? &TokenOps::bounds : &TokenOps::summary);
    keep(std::get_if<Similarity>(&node.op), &TokenOps::similarity);
    keep(std::get_if<Project>(&node.op), &TokenOps::bias);
  }
  const bool is_query = tensor == Tensor::kQ;
  const Attend& attend = attend_of(program);
  ops.quantise = quantise_of(program, is_query ? attend.q : attend.k);
  const Quantise* estimated = nullptr;
  for (const PredictStep& step : predict_steps(program)) {
    if (step.estimate == nullptr || step.estimate->q_scale < 0) continue;
    estimated = quantise_of(program, is_query ? step.estimate->q : step.estimate->k);
  }
  // Integers that attend and the estimate both read are made once.
  const bool is_shared =
      estimated != nullptr && ops.quantise != nullptr && *estimated == *ops.quantise;
  if (!is_shared) ops.estimate_quantise = estimated;
  return ops;
}

const Summarise* kept_summaries(const Program& program) {
  if (makes_keys(program) || find_op<MergeBranch>(program) != nullptr) return nullptr;
  const TokenOps ops = token_ops(program, Tensor::kK);
  if (ops.smooth != nullptr || ops.similarity != nullptr || ops.quantise != nullptr ||
      ops.estimate_quantise != nullptr || ops.bias != nullptr || ops.has_cells())
    return nullptr;
  if (ops.bounds != nullptr && ops.summary != nullptr) return nullptr;
  return ops.bounds != nullptr ? ops.bounds : ops.summary;
}

int summary_elements(const Summarise& summary, const Program& program) {
  return (summary.bounds ? 2 : 1) * program.head_dim;
}

bool quantises_attend(const Program& program) { return attend_of(program).q_scale >= 0; }

}  // namespace lacuna
