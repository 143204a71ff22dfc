// What one block takes of the target: shared memory, registers, and how many blocks an SM holds.
// choose_tiles has made sure that the block fits. This pass writes it into the plan, and warns
// where few warps would run.
#include "compiler/ir/coded_rows.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/passes/target/choose_wgmma.hpp"
#include "compiler/target/choose_variant.hpp"
#include "compiler/target/limits.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

/// Fewer warps than this leave the four schedulers of an SM idle while one of theirs waits.
constexpr int kWarpsToHideLatency = 8;

void report_poor_use(const PassContext& context, const TileShape& shape, const Occupancy& fit) {
  if (fit.blocks * shape.warps() < kWarpsToHideLatency) {
    // Tiles of the spec's own, or those that a predictor asks for.
    const char* const place =
        context.document.spans.contains("/tile") ? "/tile" : "/predictor/tile";
    Diagnostic& d = context.diagnostics.add(
        at_field(context.document, place, Code::kOccupancy, Severity::kPerf,
                 std::to_string(fit.blocks * shape.warps()) + " warps run on an SM of " +
                     context.target.name + ", limited by " + fit.limited_by));
    d.notes.push_back("with fewer than " + std::to_string(kWarpsToHideLatency) +
                      " warps the latency of loads shows");
    constexpr int kFewQueries = 64;
    if (shape.tile_q < kFewQueries)
      d.helps.emplace_back(
          "tiles of more queries, where there are many; for few queries nothing has to be done");
  }
}

/// Blocks of the wgmma family are persistent: one has the SM to itself, and warps that hide nothing
/// from one another.
void place_wgmma(const Program& program, const PassContext& context) {
  AttendPlan& plan = context.attend;
  WgmmaShape shape = with_operands({.tile_q = plan.tile_q.value,
                                    .tile_k = plan.tile_k.value,
                                    .stages = plan.stages.value,
                                    .head_dim = program.head_dim,
                                    .query_buffers = plan.query_buffers.value,
                                    .most_step_keys = context.relief.most_step_keys,
                                    .keeps_queries = plan.queries.value == QueryPlace::kRegisters,
                                    .splits_kv = plan.split_kv.value != 1,
                                    .head_dim_v = program.head_dim_v},
                                   program);
  shape.value_stages = plan.value_stages.value;
  shape.code_places = plan.code_places.value;
  const WgmmaRegisters registers = registers_of(shape);
  plan.smem_bytes = {
      smem_bytes(shape), Origin::kDerived,
      smem_formula(shape) + ", of " + std::to_string(context.target.smem_bytes_per_block)};
  plan.registers = {registers.consumer, Origin::kDerived,
                    "of a consumer's thread, by setmaxnreg; the producer's have " +
                        std::to_string(registers.producer)};
  plan.blocks_per_sm = {1, Origin::kDerived, "limited by registers"};
}

}  // namespace

Program place_smem(Program program, const PassContext& context) {
  if (context.target.kind == TargetKind::kCpu) return program;
  AttendPlan& plan = context.attend;
  if (plan.family.value == AttendFamily::kWgmma) {
    place_wgmma(program, context);
    return program;
  }
  const Attend& attend = attend_of(program);
  const TileShape shape{
      .tile_q = plan.tile_q.value,
      .tile_k = plan.tile_k.value,
      .stages = plan.stages.value,
      .head_dim = program.head_dim,
      .head_dim_v = program.head_dim_v,
      .votes = attend.gate && attend.gate->scope == GateScope::kTile,
      .values_on_demand = attend.gate && attend.gate->skips_v_load,
      .qk_bits = attend.q_scale >= 0 ? 8 : 16,
      .v_bits = attend.v_scale >= 0 ? 8 : 16,
      .e4m3_rows = attends_to_codes(program),
      .v_of_k = has_tiles_of_keys(program),
  };
  const Occupancy fit = occupancy(shape, context.target);
  plan.smem_bytes = {
      smem_bytes(shape), Origin::kDerived,
      smem_formula(shape) + ", of " + std::to_string(context.target.smem_bytes_per_block)};
  plan.registers = {registers_estimate(shape), Origin::kDerived,
                    "of a thread: an estimate of the least without spilling, of " +
                        std::to_string(registers_limit(shape, context.target)) +
                        " that it may have"};
  // The compiler takes more registers than the estimate where it can.
  plan.blocks_per_sm = {
      fit.blocks, Origin::kDerived,
      std::string(fit.blocks > 1 ? "at most, by the estimate of registers; " : "") + "limited by " +
          fit.limited_by};
  report_poor_use(context, shape, fit);
  return program;
}

}  // namespace lacuna
