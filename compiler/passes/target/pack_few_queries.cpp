#include "compiler/passes/target/pack_few_queries.hpp"

#include "compiler/ir/coded_rows.hpp"
#include "compiler/passes/target/choose_places.hpp"
#include "compiler/passes/target/choose_wgmma.hpp"

namespace lacuna {
namespace {

constexpr int kPackedRows = 128;  ///< of the two warpgroups of a block

/// Do lists that a predictor has made say all that differs by head? Integers of a head have scales
/// of its own, a gate decides about rows of one head, and tokens in an order of their own are as
/// many queries as keys.
bool has_lists_alone(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  return has_sequence_tiles(plan) && find_op<Compact>(plan.program) != nullptr &&
         attend.list_indices >= 0 && attend.columns < 0 && !attend.gate && attend.q_scale < 0 &&
         attend.v_scale < 0 && find_op<Permute>(plan.program) == nullptr;
}

}  // namespace

std::optional<AttendPlan> pack_few_queries(const Plan& plan, const PassContext& context) {
  if (!has_lists_alone(plan)) return std::nullopt;
  const Program program = without_lists(plan.program);
  WgmmaShape shape = with_operands({.tile_q = kPackedRows,
                                    .tile_k = plan.attend.tile_k.value,
                                    .stages = plan.attend.stages.value,
                                    .head_dim = program.head_dim,
                                    .most_step_keys = context.relief.most_step_keys,
                                    .keeps_queries = false,
                                    .splits_kv = true,
                                    .head_dim_v = program.head_dim_v},
                                   program);
  shape = with_places(shape, program, plan.target);
  if (smem_bytes(shape) > plan.target.smem_bytes_per_block) return std::nullopt;
  AttendPlan packed = plan.attend;
  Diagnostics ignored;  // what they say was said of the plan itself
  const PassContext own{context.target, context.document, packed,        ignored,
                        context.tuned,  context.family,   context.relief};
  packed.tile_q = {kPackedRows, Origin::kDerived, "rows of all heads that share keys"};
  packed.queries = {QueryPlace::kSharedMemory, Origin::kDerived,
                    "few queries wait for keys, and rows that hide tiles take registers"};
  packed.warps = {shape.warps(), Origin::kDerived, "tile.q / 16"};
  place_smem(note_family(program, {shape, plan.attend.family.reason}, own), own);
  packed.walk = {TileWalk::kSequenceKept, Origin::kDerived,
                 "tiles that any head of the work tile keeps"};
  return packed;
}

}  // namespace lacuna
