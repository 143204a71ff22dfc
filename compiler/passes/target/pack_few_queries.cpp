#include "compiler/passes/target/pack_few_queries.hpp"

#include "compiler/expr/fold.hpp"
#include "compiler/passes/target/choose_places.hpp"
#include "compiler/passes/target/choose_wgmma.hpp"

namespace lacuna {
namespace {

constexpr int kPackedRows = 128;  ///< of the two warpgroups of a block

/// Lists that a predictor has made have bits for each head. Those of the caller have none.
bool has_made_lists(const Program& program) {
  return attend_of(program).list_indices >= 0 && find_op<Compact>(program) != nullptr;
}

/// Can rows hide the tiles that the gate leaves out for their head? A hidden tile has no part in
/// the denominator, so the gate has to skip exponentials. And the gate reads scores, which a score
/// formula may have made relative to a maximum by then.
bool can_gate_rows(const Attend& attend) { return attend.gate->skips_exp && attend.score.empty(); }

/// Do lists and a gate say all that differs by head? Integers of a head have scales of its own, and
/// tokens in an order of their own are as many queries as keys.
bool differs_by_tiles_alone(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  if (!has_sequence_tiles(plan) || attend.columns >= 0 || attend.q_scale >= 0 ||
      attend.v_scale >= 0 || find_op<Permute>(plan.program) != nullptr)
    return false;
  const bool has_lists = attend.list_indices >= 0;
  if (has_lists && !has_made_lists(plan.program)) return false;
  return attend.gate ? can_gate_rows(attend) : has_lists;
}

/// For the choice of tiles and parts: rows hide tiles as under a mask.
Program without_tiles_of_heads(Program program) {
  Attend& attend = attend_of(program);
  attend.list_indices = attend.list_counts = -1;
  attend.gate.reset();
  return program;
}

/// May several items share a row whose heads have a gate? Not if what it decides depends on the
/// tiles before. The first tile of a head always counts: it has to be known which that is.
bool may_split(const Attend& attend) {
  return !attend.gate || (!reads(*attend.gate, Variable::kGap) && attend.list_indices < 0 &&
                          !uses(attend.mask, Variable::kH));
}

}  // namespace

std::optional<AttendPlan> pack_few_queries(const Plan& plan, const PassContext& context) {
  if (!context.relief.packs_few || !differs_by_tiles_alone(plan)) return std::nullopt;
  const Program program = without_tiles_of_heads(plan.program);
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
  // Rows that hide tiles take registers, so a step may have fewer keys than with lists.
  if (shape.step_keys() % shape.tile_k != 0) return std::nullopt;
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
  if (attend_of(plan.program).list_indices >= 0)
    packed.walk = {TileWalk::kSequenceKept, Origin::kDerived,
                   "tiles that any head of the work tile keeps"};
  if (!may_split(attend_of(plan.program)))
    packed.split_kv = {1, Origin::kDerived, "what a gate decides depends on the tiles before"};
  return packed;
}

}  // namespace lacuna
