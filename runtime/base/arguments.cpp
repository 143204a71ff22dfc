#include "runtime/base/arguments.hpp"

#include "compiler/ir/callers_positions.hpp"
#include "compiler/lower/token_ops.hpp"

namespace lacuna {

LaunchContract make_contract(const Plan& plan, DLDevice device) {
  const Attend& attend = attend_of(plan.program);
  LaunchContract contract;
  contract.kernel = plan.program.name;
  contract.device = device;
  contract.dtype = plan.program.dtype;
  contract.batch = plan.program.batch;
  contract.kv = plan.program.kv;
  contract.packs_heads = packs_heads(plan);
  contract.copies_from_pages =
      has_sequence_tiles(plan) && attend.columns >= 0 && plan.program.batch == BatchLayout::kPages;
  contract.head_dim = plan.program.head_dim;
  contract.head_dim_v = value_dim(plan.program);
  contract.tile_q = attend.tile_q;
  contract.tile_k = attend.columns >= 0 ? attend.keep_k : attend.tile_k;
  for (const Node& node : plan.program.nodes) {
    const Input* input = std::get_if<Input>(&node.op);
    if (input == nullptr) continue;
    contract.takes_lists |= input->name == "list_indices";
    contract.takes_previous_lse |= input->name == "previous_lse";
    contract.takes_order |= input->name == "order";
  }
  contract.keeps_selection = find_op<Select>(plan.program) != nullptr;
  if (const Summarise* summary = kept_summaries(plan.program)) {
    contract.summary_tile = summary->tile;
    contract.summary_elements = summary_elements(*summary, plan.program);
  }
  contract.has_lse = attend.lse;
  contract.v_of_k = attend.v_of_k;
  contract.params = plan.program.params;
  contract.order_params = order_params(plan.program);
  contract.params.resize(contract.params.size() - contract.order_params);
  return contract;
}

}  // namespace lacuna
