// Drops ops whose results nobody reads: neither the caller (o, lse) nor another op that is kept.
// Values are renumbered; names stay. Before that, operands that their formula no longer reads are
// removed.
#include "compiler/passes/eliminate_dead_ops.hpp"

#include <algorithm>
#include <vector>

#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/fields.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

bool reads(const Expr& expr, Variable variable) { return !expr.empty() && uses(expr, variable); }

void let_go(int& operand, bool is_read) {
  if (!is_read) operand = -1;
}

/// Operands stand for variables of a formula: without one that reads them they mean nothing.
void release_operands(Op& op) {
  if (auto* select = std::get_if<Select>(&op)) {
    const Expr& keep = select->keep;
    let_go(select->p, reads(keep, Variable::kP) || reads(keep, Variable::kRank) ||
                          reads(keep, Variable::kMassBefore) || reads(keep, Variable::kPMax));
    let_go(select->score, reads(keep, Variable::kScore));
    let_go(select->similar_q, reads(keep, Variable::kSimilarQ));
    let_go(select->similar_k, reads(keep, Variable::kSimilarK));
  } else if (auto* estimate = std::get_if<Estimate>(&op)) {
    let_go(estimate->similar_q, reads(estimate->exclude, Variable::kSimilarQ));
    let_go(estimate->similar_k, reads(estimate->exclude, Variable::kSimilarK));
  }
}

bool is_result_of_program(const Op& op) {
  return std::holds_alternative<Attend>(op) || std::holds_alternative<Unpermute>(op) ||
         std::holds_alternative<MergeBranch>(op);
}

}  // namespace

Program without_unread(Program program) {
  std::vector<bool> is_read(program.values.size(), false);
  std::vector<bool> is_kept(program.nodes.size(), false);
  // Readers stand below what they read.
  for (std::size_t n = program.nodes.size(); n-- > 0;) {
    Node& node = program.nodes[n];
    is_kept[n] = is_result_of_program(node.op) || std::ranges::any_of(node.results, [&](int id) {
                   return is_read[static_cast<std::size_t>(id)];
                 });
    if (!is_kept[n]) continue;
    release_operands(node.op);
    for_each_operand(node.op, [&](int id, bool) {
      if (id >= 0) is_read[static_cast<std::size_t>(id)] = true;
    });
  }

  Program kept{
      program.name, program.head_dim,   program.dtype, program.batch, std::move(program.params), {},
      {},           program.head_dim_v, program.kv};
  std::vector<int> new_id(program.values.size(), -1);
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    if (!is_kept[n]) continue;
    Node& node = kept.nodes.emplace_back(std::move(program.nodes[n]));
    for_each_operand(node.op, [&](int& id, bool) {
      if (id >= 0) id = new_id[static_cast<std::size_t>(id)];
    });
    for (int& id : node.results) {
      const auto old = static_cast<std::size_t>(id);
      new_id[old] = id = static_cast<int>(kept.values.size());
      kept.values.push_back(std::move(program.values[old]));
    }
  }
  return kept;
}

Program eliminate_dead_ops(Program program, const PassContext&) {
  return without_unread(std::move(program));
}

}  // namespace lacuna
