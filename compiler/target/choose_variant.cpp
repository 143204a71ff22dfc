#include "compiler/target/choose_variant.hpp"

#include <algorithm>

#include "compiler/expr/bounds/monotonicity.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/coded_rows.hpp"

namespace lacuna {
namespace {

/// What a lane has seen opens a gate if it reads one statistic (the largest of two may be of
/// different rows), and stays open as that grows.
bool lanes_open_gate(const Gate& gate) {
  const auto opens_along = [&](Variable variable) {
    const Monotonicity skip = monotonicity_of(gate.skip, variable);
    const Monotonicity exempt = monotonicity_of(gate.exempt, variable);
    return (skip == Monotonicity::kConstant || skip == Monotonicity::kFalls) &&
           (exempt == Monotonicity::kConstant || exempt == Monotonicity::kRises);
  };
  const bool reads_gap = reads(gate, Variable::kGap);
  return reads(gate, Variable::kTileMax) != reads_gap &&
         opens_along(reads_gap ? Variable::kGap : Variable::kTileMax);
}

/// What keeps rows from following one another without a pause (ChainedConsumer); "" if nothing.
/// The first scores of the next row are issued before O of this one is stored, so its tiles have to
/// be known by then, and its queries need registers and a place of their own.
std::string chain_objection(const WgmmaShape& shape, const Attend& attend) {
  if (shape.gathers) return "of gathered keys the next ones are known too late";
  if (shape.work_tiles > 1) return "of two lists the next tiles are known too late";
  if (shape.has_sequence_tiles) return "of sequences the next item is known too late";
  if (shape.warpgroups() != 2)
    return std::to_string(shape.warpgroups()) + " warpgroups have no registers for queries";
  if (widest_row(shape) > 2 * kPanelElements)
    return "rows of " + std::to_string(widest_row(shape)) + " elements leave queries no registers";
  if (!shape.keeps_queries) return "queries are not kept in registers";
  if (attend.gate) return "a gate takes the registers of the next scores";
  if (shape.splits_kv) return "partial results take the registers of the next scores";
  if (shape.query_buffers < 2) return "shared memory has no place for the next queries";
  return "";
}

Chosen<Consumer> choose_consumer(const WgmmaShape& shape, const Attend& attend) {
  const Consumer consumer = consumer_of(shape, attend);
  switch (consumer) {
    case Consumer::kWgmmaInt8:
      return {consumer, Origin::kDerived, "queries and keys are int8"};
    case Consumer::kWgmmaTileGate:
      return {consumer, Origin::kDerived,
              "the gate reads the tile's largest score alone, so it is decided a step ahead"};
    case Consumer::kWgmmaChained:
      return {consumer, Origin::kDefault,
              "operands of 16 bits; the next row begins before O is stored"};
    default:
      return {consumer, Origin::kDerived,
              "operands of 16 bits; O is stored before the next row begins: " +
                  chain_objection(shape, attend)};
  }
}

Chosen<Producer> choose_producer(const WgmmaShape& shape, BatchLayout batch, Consumer consumer) {
  if (shape.gathers) return {Producer::kWgmmaGather, Origin::kDerived, "keys are gathered"};
  if (shape.work_tiles > 1)
    return {Producer::kWgmmaTwoLists, Origin::kDerived, "work_tiles = 2, each with a list"};
  if (shape.e4m3_rows)
    return {Producer::kWgmmaConverting, Origin::kDerived,
            "keys and values are e4m3: one warp loads codes, four make 16-bit rows of them"};
  if (consumer == Consumer::kWgmmaTileGate)
    return {Producer::kWgmmaTileGate, Origin::kDerived,
            "the gate is decided here, and V of tiles that count is loaded behind the decision"};
  if (batch != BatchLayout::kUniform)
    return {Producer::kWgmmaSequences, Origin::kDerived,
            "loads of sequences are long: two warps bring keys, and two bring values"};
  return {Producer::kWgmma, Origin::kDefault, "walks over tiles and loads each of them"};
}

Chosen<GatePolicy> choose_gate_policy(const WgmmaShape& shape, Consumer consumer,
                                      const Attend& attend) {
  if (!attend.gate) return {GatePolicy::kNone, Origin::kDefault, "the spec has no gate"};
  if (consumer == Consumer::kWgmmaTileGate)
    return {GatePolicy::kAhead, Origin::kDerived, "the only one that TileGateConsumer has"};
  const auto by_statistics = [](const char* reason) -> Chosen<GatePolicy> {
    return {GatePolicy::kStatistics, Origin::kDefault, reason};
  };
  if (!lanes_open_gate(*attend.gate))
    return by_statistics("what one lane has seen of a tile does not tell that it counts");
  if (consumer == Consumer::kWgmmaInt8) {
    if (attend.gate->skips_exp)
      return by_statistics("int8 scores, and the gate is decided before the exponentials");
    return {GatePolicy::kStepVotes, Origin::kDerived,
            "int8 scores, one lane can tell that a tile counts, and only the product with V waits"};
  }
  if (shape.stages * (shape.step_keys() / shape.tile_k) >= kTileVoteSlots)
    return by_statistics("warps may be further apart than votes have places");
  return {GatePolicy::kTileVotes, Origin::kDerived, "one lane can tell that a tile counts"};
}

Chosen<TileWalk> choose_walk(const Attend& attend, bool has_sequence_tiles, int work_tiles) {
  if (has_sequence_tiles && attend.list_indices < 0 && attend.columns < 0)
    return {TileWalk::kSequence, Origin::kDerived, "a batch of sequences"};
  if (has_sequence_tiles && work_tiles == 1 && attend.columns < 0)
    return {TileWalk::kSequenceList, Origin::kDerived, "a batch of sequences, and lists"};
  if (attend.columns >= 0)
    return {TileWalk::kGather, Origin::kDerived, "tiles of the keys that are gathered"};
  if (attend.list_indices < 0)
    return {TileWalk::kMask, Origin::kDefault,
            attend.mask.empty() ? "all tiles: there is no mask" : "all tiles that the mask leaves"};
  if (work_tiles > 1)
    return {TileWalk::kTwoLists, Origin::kDerived, "work_tiles = 2, each with a list"};
  return {TileWalk::kList, Origin::kDerived, "the tiles that the list names"};
}

Chosen<OperandRows> choose_keys(const Program& program) {
  if (attend_of(program).q_scale >= 0)
    return {OperandRows::kQuantised, Origin::kDerived, "int8, made before attend"};
  if (attends_to_codes(program))
    return {OperandRows::kE4m3, Origin::kCaller, "16-bit tiles are made of them"};
  return {OperandRows::kTokens, Origin::kDefault, "16 bits, as they lie in memory"};
}

Chosen<OperandRows> choose_values(const Program& program) {
  if (attend_of(program).v_scale >= 0)
    return {OperandRows::kQuantised, Origin::kDerived, "e4m3, made before attend and transposed"};
  if (attends_to_codes(program))
    return {OperandRows::kE4m3, Origin::kCaller, "16-bit tiles are made of them"};
  return {OperandRows::kTokens, Origin::kDefault, "16 bits, as they lie in memory"};
}

/// Of queries and keys.
Chosen<OperandRows> choose_row_slots(const Attend& attend) {
  if (attend.q_scale >= 0) return {OperandRows::kByteSlot, Origin::kDerived, "int8"};
  return {OperandRows::kPanelSlot, Origin::kDefault, "16 bits"};
}

Chosen<OperandRows> choose_value_slots(const Attend& attend) {
  if (attend.v_scale >= 0)
    return {OperandRows::kColumnSlot, Origin::kDerived, "e4m3, transposed before attend"};
  return {OperandRows::kPanelSlot, Origin::kDefault, "16 bits"};
}

/// Is it a tensor of the caller, as it lies?
bool is_input(const Program& program, int value) {
  return std::ranges::any_of(program.nodes, [&](const Node& node) {
    return std::holds_alternative<Input>(node.op) && node.results.front() == value;
  });
}

}  // namespace

bool decides_by_tile_max(const Attend& attend) {
  return attend.gate && attend.gate->scope == GateScope::kTile && attend.gate->skips_exp &&
         !reads(*attend.gate, Variable::kGap);
}

bool has_tiles_of_keys(const Program& program) {
  const Attend& attend = attend_of(program);
  const bool has_8_bits = attends_to_codes(program) || attend.q_scale >= 0 || attend.v_scale >= 0;
  const bool skips_loads = attend.gate && attend.gate->skips_v_load;
  return attend.v_of_k && !has_8_bits && !skips_loads && is_input(program, attend.k) &&
         is_input(program, attend.v);
}

Consumer consumer_of(const WgmmaShape& shape, const Attend& attend) {
  const bool is_wide = widest_row(shape) > 2 * kPanelElements;
  if (attend.q_scale >= 0) return Consumer::kWgmmaInt8;
  const bool looks_ahead = decides_by_tile_max(attend) && attend.v_scale < 0 &&
                           attend.columns < 0 && shape.work_tiles == 1 && shape.warpgroups() == 2 &&
                           !is_wide && !shape.e4m3_rows;
  if (looks_ahead) return Consumer::kWgmmaTileGate;
  return chain_objection(shape, attend).empty() ? Consumer::kWgmmaChained : Consumer::kWgmma;
}

void note_wgmma_variant(const WgmmaShape& shape, const Program& program, AttendPlan& plan) {
  const Attend& attend = attend_of(program);
  plan.consumer = choose_consumer(shape, attend);
  plan.walk = choose_walk(attend, shape.has_sequence_tiles, shape.work_tiles);
  plan.producer = choose_producer(shape, program.batch, plan.consumer.value);
  plan.keys = choose_row_slots(attend);
  plan.values = choose_value_slots(attend);
  plan.gate_policy = choose_gate_policy(shape, plan.consumer.value, attend);
}

void note_mma_variant(const Program& program, AttendPlan& plan) {
  const Attend& attend = attend_of(program);
  plan.walk = choose_walk(attend, false, 1);
  plan.keys = choose_keys(program);
  plan.values = choose_values(program);
  plan.consumer = {Consumer::kPlain, Origin::kDefault, "products of 16-bit rows are scores"};
  if (attend.q_scale >= 0)
    plan.consumer = {Consumer::kQuantised, Origin::kDerived, "queries and keys are int8"};
  plan.producer = {Producer::kRowTiles, Origin::kDefault, "rows as they lie in memory"};
  const bool has_pages = program.batch == BatchLayout::kPages && !makes_keys(program);
  if (has_pages)
    plan.producer = {Producer::kPages, Origin::kDerived, "keys and values lie in pages"};
  if (attend.columns >= 0) {
    plan.producer = {has_pages ? Producer::kPageGather : Producer::kGather, Origin::kDerived,
                     has_pages ? "keys are gathered from pages" : "keys are gathered"};
  }
}

}  // namespace lacuna
