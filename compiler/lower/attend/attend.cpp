// attend, in the family that the plan has.
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/coded_rows.hpp"
#include "compiler/lower/attend/schedule.hpp"
#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/launch_text.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/lower/token_ops.hpp"
#include "compiler/target/choose_variant.hpp"
#include "compiler/target/wgmma_limits.hpp"
#include "templates/shared/select_block.cuh"

namespace lacuna {
namespace {

/// Of the 50 MB of an H100 or H200, whose queries and outputs pass through it, too.
constexpr int kL2BytesOfKeys = 32 << 20;

bool is_wgmma(const Plan& plan) { return plan.attend.family.value == AttendFamily::kWgmma; }
bool gathers(const Plan& plan) { return attend_of(plan.program).columns >= 0; }

/// A part of the kernel as a type.
template <class Part>
ConfigField part(const char* name, const Chosen<Part>& chosen, std::string type) {
  return {"using", name, std::move(type), kNoField, chosen.origin, chosen.reason};
}
template <class Part>
ConfigField part(const char* name, const Chosen<Part>& chosen) {
  return part(name, chosen, std::string(device_type(chosen.value)));
}

/// Of the wgmma family.
ConfigField slot(const char* name, const Chosen<OperandRows>& rows, std::string_view count,
                 std::string_view box_rows, std::string_view head_dim) {
  return part(name, rows, slot_type(rows.value, count, box_rows, head_dim));
}

void add_parts(const AttendPlan& chosen, std::vector<ConfigField>& fields) {
  if (chosen.producer.value != Producer::kWgmmaGather)  // which needs none
    fields.push_back(
        part("Walk", chosen.walk, device_type(chosen.walk.value, chosen.split_kv.value > 1)));
  fields.push_back(
      part("Producer", chosen.producer,
           device_type(chosen.producer.value, chosen.keys.value, chosen.values.value)));
  fields.push_back(part("Consumer", chosen.consumer));
}

/// What the wgmma family has besides.
void add_wgmma_config(const Plan& plan, std::vector<ConfigField>& fields) {
  const AttendPlan& chosen = plan.attend;
  const std::optional<Gate>& gate = attend_of(plan.program).gate;
  const auto gate_reads = [&](Variable variable) { return gate && reads(*gate, variable); };
  constexpr const char* kGate = "/gate/skip";
  const std::string value_width = std::to_string(value_dim(plan.program));
  fields.insert(fields.end(),
                {integer("kWorkTiles", chosen.work_tiles, kNoField),
                 integer("kWarpgroups", chosen.warpgroups, "/tile/q"),
                 integer("kStepKeys", chosen.step_keys, kNoField),
                 integer("kValueStages", chosen.value_stages, kNoField),
                 integer("kQueryBuffers", chosen.query_buffers, kNoField),
                 boolean("kGateReadsTileMax", gate_reads(Variable::kTileMax), kGate),
                 boolean("kGateReadsGap", gate_reads(Variable::kGap), kGate),
                 part("GatePolicy", chosen.gate_policy),
                 part("Row", chosen.walk, std::string(row_type(has_sequence_tiles(plan)))),
                 slot("QuerySlot", chosen.keys, "64", "64", "kHeadDim"),
                 slot("KeySlot", chosen.keys, "kStepKeys", "kTileK", "kHeadDim"),
                 slot("ValueSlot", chosen.values, "kStepKeys", "kTileK", value_width)});
  if (chosen.queries.value == QueryPlace::kSharedMemory)
    fields.push_back(boolean("kKeepsQueries", false, "/tile/queries", chosen.queries.origin,
                             chosen.queries.reason));
  if (has_long_bounds(attend_of(plan.program)))
    fields.push_back(boolean("kHasLongBounds", true, "/attention/mask", Origin::kDerived,
                             "bounds of a tile are multiples of a parameter"));
  if (chosen.code_places.value > 0)
    fields.push_back(integer("kCodePlaces", chosen.code_places, kNoField));
}

/// Of both attends of a plan; `packed`: of the second one.
void add_row_field(const AttendPlan& packed, std::vector<ConfigField>& fields) {
  if (packed.split_kv.value != 1) return;
  fields.push_back(boolean("kHasWholeRows", true, "/tile/split_kv", packed.split_kv.origin,
                           "heads are packed where rows outnumber multiprocessors"));
}

/// Of the second attend of a plan.
void add_packed_fields(const Plan& plan, std::vector<ConfigField>& fields) {
  fields.push_back(boolean("kTakesFewQueries", true, kNoField, Origin::kDerived,
                           "the other attend leaves them"));
  add_row_field(plan.attend, fields);
  if (has_kept_tiles(plan))
    fields.push_back(boolean("kHidesRows", true, kNoField, Origin::kDerived,
                             "each head keeps tiles of its own"));
  if (attend_of(plan.program).gate)
    fields.push_back(boolean("kGatesRows", true, "/gate/skip", Origin::kDerived,
                             "each head has a gate of its own"));
}

std::vector<ConfigField> attend_config(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  const AttendPlan& chosen = plan.attend;
  const Gate no_gate;
  // Rows of several heads hide what a gate leaves out: no tile is skipped.
  const bool has_gate = attend.gate && !plan.is_packed;
  const Gate& gate = has_gate ? *attend.gate : no_gate;
  const Select* select = last_step(plan.program).select;
  const bool reads_bits = gathers(plan) || has_kept_tiles(plan);
  const bool shared = reads_bits && select != nullptr && select->shared_heads;
  const int keep_k = gathers(plan)          ? attend.keep_k
                     : has_kept_tiles(plan) ? find_op<Compact>(plan.program)->keep_k
                                            : 1;
  const bool is_quantised = quantises_attend(plan.program);
  constexpr const char *kSkips = "/gate/skips", *kSmooth = "/predictor/smooth";
  std::vector<ConfigField> fields = {
      integer("kTileQ", chosen.tile_q, "/tile/q"),
      integer("kTileK", chosen.tile_k, "/tile/k"),
      integer("kStages", chosen.stages, "/tile/stages"),
      integer("kWarps", chosen.warps, "/tile/warps"),
      boolean("kDescending", attend.order == TileOrder::kDescending, "/tile/order",
              chosen.order.origin, chosen.order.reason),
      has_mask(attend.mask),
      boolean("kHasScore", !attend.score.empty(), "/attention/score"),
      boolean("kUsesLists", attend.list_indices >= 0, "/mask"),
      enumerator("GateScope", "kGateScope",
                 scope_name(has_gate ? attend.gate : std::optional<Gate>()), "/gate/scope"),
      boolean("kSkipsVLoad", gate.skips_v_load, kSkips),
      boolean("kSkipsExp", gate.skips_exp, kSkips),
      boolean("kSkipsPv", gate.skips_pv, kSkips),
      boolean("kWritesLse", attend.lse, "/attention/lse"),
      integer("kQkBits", is_quantised ? 8 : 16, "/quantise/qk/bits"),
      enumerator("QuantGroup", "kQkGroup", group_name(attend.qk_group), "/quantise/qk/group"),
      integer("kQkTileK", is_quantised ? attend.qk_tile_k : chosen.tile_k.value, kNoField,
              Origin::kDerived, "keys of a tile of quantisation groups"),
      integer("kVBits", attend.v_scale >= 0 ? 8 : 16, "/quantise/v/bits"),
      boolean("kHasRowBias", attend.row_bias >= 0, kSmooth),
      boolean("kHasColumnBias", attend.column_bias >= 0, kSmooth),
      boolean("kGathers", gathers(plan), "/loader"),
      integer("kKeepK", keep_k, "/predictor/tile/k"),
      boolean("kSharedHeads", shared, "/predictor/heads"),
  };
  if (plan.is_packed) {
    add_packed_fields(plan, fields);
  } else if (plan.packed) {
    fields.push_back(boolean("kLeavesFewQueries", true, kNoField, Origin::kDerived,
                             "sequences of few queries are those of attend_packed"));
    add_row_field(*plan.packed, fields);
  }
  add_pair_fields(attend, fields);
  if (attends_to_codes(plan.program)) add_code_field(fields);
  if (!is_wgmma(plan) && has_tiles_of_keys(plan.program))
    fields.push_back(boolean("kVOfK", true, "/attention/v"));
  add_weight_kind(attend, fields);
  add_parts(chosen, fields);
  if (is_wgmma(plan)) add_wgmma_config(plan, fields);
  if (has_sequence_tiles(plan)) {
    fields.push_back(boolean("kHasSequenceTiles", true, kNoField, Origin::kDerived,
                             "blocks take items of all sequences one after the other"));
    if (packs_heads(plan))
      fields.push_back(boolean("kPacksHeads", true, kNoField, Origin::kDerived,
                               "keys are read once for all heads that share them"));
    fields.push_back(integer("kSplitItems", chosen.split_kv, "/tile/split_kv"));
    add_row_end_fields(attend, fields);
  } else if (chosen.split_kv.value > 1)
    fields.push_back(split_kv_field(chosen));  // combine writes the results
  else
    add_row_end_fields(attend, fields);
  return fields;
}

/// Work tiles, or of split ones the items.
ShapeExpr mma_attend_grid(const Plan& plan) {
  const std::string rows = blocks_over(Tensor::kQ, plan.attend.tile_q.value);
  if (gathers(plan))
    return {at_most(rows, kMostBlocks),
            "one for each work tile, up to " + std::to_string(kMostBlocks) +
                " that have a list of keys each and take several rows one after the other"};
  if (plan.attend.split_kv.value == 1) return {rows, "one for each work tile"};
  return {rows + " * " + std::to_string(plan.attend.split_kv.value),
          "one for each share of a work tile"};
}

/// Blocks of the wgmma family stay until there is no work.
ShapeExpr wgmma_attend_grid(const Plan& plan) {
  if (has_sequence_tiles(plan))
    return {"sm_count",
            "one on each multiprocessor; it takes one item of the schedule after the other"};
  const int split = plan.attend.split_kv.value;
  std::string rows =
      blocks_over(Tensor::kQ, plan.attend.tile_q.value * plan.attend.work_tiles.value);
  if (split > 1) rows += " * " + std::to_string(split);
  return {"min(" + rows + ", sm_count)",
          std::string(split > 1                          ? "one for each share of a work tile"
                      : plan.attend.work_tiles.value > 1 ? "one for each two work tiles"
                                                         : "one for each work tile") +
              ", but no more than multiprocessors; each takes one after the other"};
}

Chosen<int> attend_threads(const Plan& plan) {
  const int computing = plan.attend.warps.value * kWarpThreads;
  if (!is_wgmma(plan)) return {computing, Origin::kDerived, "tile.warps * 32"};
  return {computing + kWarpgroupThreads, Origin::kDerived,
          "tile.warps * 32, and a warpgroup that loads"};
}

/// One, whatever the plan says of what fits: a second __launch_bounds__ would make the compiler
/// save registers.
Chosen<int> attend_resident_blocks(const Plan& plan) {
  if (is_wgmma(plan))
    return {1, Origin::kDerived, "until setmaxnreg deals them out as the plan's registers say"};
  return {1, Origin::kDefault, "the plan estimates " + std::to_string(plan.attend.registers.value)};
}

void add_operands(const Plan& plan, Kernel& kernel) {
  const Attend& attend = attend_of(plan.program);
  const auto add = [&](bool is_read, std::initializer_list<std::string_view> names) {
    if (is_read) kernel.operands.insert(kernel.operands.end(), names);
  };
  const bool is_quantised = quantises_attend(plan.program);
  add(!is_quantised, {"q", "k"});
  add(is_quantised, {"q_values", "k_values", "q_scale", "k_scale"});
  add(attend.v_scale < 0, {"v"});
  add(attend.v_scale >= 0, {"v_values", "v_scale"});
  add(attend.row_bias >= 0, {"row_bias"});
  add(attend.column_bias >= 0, {"column_bias"});
  add(attend.list_indices >= 0, {"list_indices", "list_counts"});
  add(find_op<Compact>(plan.program) != nullptr && !has_sequence_tiles(plan), {"row_order"});
  add(gathers(plan) || has_kept_tiles(plan), {"kept"});
  add(attend.pairs, {"tile_classes"});
  add(true, {"o", "lse"});
}

/// Query heads that are at work together: under a mask, which makes rows uneven, those of as many
/// KV heads as stay in the L2 with all their keys and values.
std::string head_group(const Plan& plan) {
  if (attend_of(plan.program).mask.empty()) return "1";
  const int element_bytes = attends_to_codes(plan.program) ? 1 : kElementBytes;
  const int row_bytes = element_bytes * (plan.program.head_dim + value_dim(plan.program));
  const int tokens = kL2BytesOfKeys / row_bytes;
  return "max(min(" + std::to_string(tokens) +
         " // max(n_k, 1), n_b * n_h_kv), 1) * (n_h // n_h_kv)";
}

std::vector<Slot> attend_slots(const Plan& plan, const ShapeExpr& grid) {
  const Attend& attend = attend_of(plan.program);
  const bool has_tiles = has_sequence_tiles(plan);
  const std::string heads = has_tiles ? "n_sequences * n_h" : all_heads(Tensor::kQ);
  const SlotRegion region = has_tiles ? SlotRegion::kBatch : SlotRegion::kOwn;
  const int head_dim = value_dim(plan.program), split = plan.attend.split_kv.value;
  std::vector<Slot> slots;
  if (find_op<Unpermute>(plan.program) != nullptr) {
    slots.push_back({"ordered_o", units(heads, "n_q", head_dim * kElementBytes)});
    if (attend.lse) slots.push_back({"ordered_lse", units(heads, "n_q", kWordBytes)});
  }
  if (const auto* merge = find_op<MergeBranch>(plan.program)) {
    slots.push_back({"branch_o", units(heads, "n_q", head_dim * kElementBytes), false, region});
    if (merge->weight.empty())
      slots.push_back({"branch_lse", units(heads, "n_q", kWordBytes), false, region});
  }
  if (gathers(plan) && !is_wgmma(plan))  // which expands columns in shared memory
    slots.push_back(
        {"gathered", units("(" + grid.expr + ")", padded_length(Tensor::kK), kWordBytes)});
  if (split > 1 && !has_tiles) {  // templates/args/split_args.cuh
    const std::string outer = std::to_string(split) + " * " + heads;
    slots.push_back({"partial_o", units(outer, "n_q", head_dim * kWordBytes)});
    slots.push_back({"partial_lse", units(outer, "n_q", kWordBytes)});
  }
  if (has_tiles) {
    for (const Slot& slot : schedule_slots(plan, "")) slots.push_back(slot);
  } else if (is_wgmma(plan)) {
    slots.push_back({"next_row", "1", true});
  }
  return slots;
}

}  // namespace

std::vector<NamedSize> attend_sizes(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  // A gathering attend counts and reports columns.
  const int tile_k = gathers(plan) ? attend.keep_k : attend.tile_k;
  std::vector<NamedSize> sizes{{"q_tiles", tiles_of(Tensor::kQ, attend.tile_q)},
                               {"k_tiles", tiles_of(Tensor::kK, tile_k)},
                               {"heads_per_kv", "n_h // n_h_kv"}};
  if (is_wgmma(plan)) sizes.push_back({"head_group", head_group(plan)});
  if (plan.program.batch != BatchLayout::kUniform)
    sizes.insert(sizes.end(), {{"n_b", has_sequence_tiles(plan) ? "n_sequences" : "n_b"},
                               {"n_q", "n_q"},
                               {"n_k", "n_k"},
                               {"tile_q", std::to_string(attend.tile_q)},
                               {"tile_k", std::to_string(tile_k)}});
  if (has_sequence_tiles(plan)) {
    for (NamedSize& size : schedule_sizes(plan, "")) sizes.push_back(std::move(size));
  }
  return sizes;
}

namespace {

Kernel attend_kernel(const Plan& plan) {
  const bool wgmma = is_wgmma(plan);
  Kernel kernel{.name = "attend",
                .because = "every spec has it; the family is " +
                           std::string(name_of(plan.attend.family.value)) + ": " +
                           plan.attend.family.reason,
                .header = wgmma ? "attend/wgmma/attend_wgmma.cuh" : "attend/mma/attend_mma.cuh",
                .function = wgmma ? "attend_wgmma" : "attend_mma",
                .config = attend_config(plan),
                .grid = wgmma ? wgmma_attend_grid(plan) : mma_attend_grid(plan),
                .threads = attend_threads(plan),
                .smem_bytes = plan.attend.smem_bytes,
                .resident_blocks = attend_resident_blocks(plan),
                .sizes = attend_sizes(plan),
                .attends = true,
                .needs_keys = false};
  if (plan.program.batch != BatchLayout::kUniform) {
    // Extents of q and k count the tokens of all sequences.
    for (const char* extent : {"n_b", "n_q", "n_k"})
      kernel.arguments.push_back({extent, FieldSource::kValue, extent});
  }
  kernel.slots = attend_slots(plan, kernel.grid);
  add_operands(plan, kernel);
  return kernel;
}

/// The second attend of a plan: of sequences of few queries. It has a schedule of its own; all else
/// in its arguments is that of the first one.
Kernel packed_kernel(const Plan& plan) {
  const Plan packed = plan_of_packed(plan);
  Kernel kernel = attend_kernel(packed);
  kernel.name = "attend_packed";
  kernel.because =
      "sequences of few queries, whose heads share work tiles and the keys that any keeps";
  kernel.is_packed = true;
  kernel.arguments.clear();
  kernel.slots = schedule_slots(packed, kPackedPrefix);
  kernel.sizes = schedule_sizes(packed, kPackedPrefix);
  return kernel;
}

}  // namespace

Kernels lower_attend(const Plan& plan) {
  Kernel kernel = attend_kernel(plan);
  if (!plan.packed) return {kernel};
  const std::string most = most_few_queries(plan);
  kernel.grid.expr = "sm_count * min(max(n_q - " + most + ", 0), 1)";
  kernel.grid.reason += "; none where all sequences have few queries";
  Kernel packed = packed_kernel(plan);
  packed.grid.expr = "sm_count * min(" + most + ", 1)";
  packed.grid.reason += "; none where heads are not packed";
  return {kernel, packed};
}

}  // namespace lacuna
