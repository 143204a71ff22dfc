#include "compiler/passes/target/choose_wgmma.hpp"

#include <algorithm>

#include "compiler/expr/bounds/key_ranges.hpp"
#include "compiler/expr/parts/costly_formulas.hpp"
#include "compiler/expr/parts/score_parts.hpp"
#include "compiler/expr/parts/shared_parts.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/coded_rows.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/passes/target/choose_places.hpp"
#include "compiler/target/choose_variant.hpp"

namespace lacuna {
namespace {

/// The registers of a consumer are planned for each of these. Rows that are no whole panels are
/// loaded as such, with zeros behind their end.
constexpr int kWgmmaHeadDims[] = {64, 80, 96, 112, 128, 192, 256};
constexpr int kBlockRows = 128;      ///< queries of two consumer warpgroups
constexpr int kWideBlockRows = 192;  ///< of three, whose registers hold rows of kNarrowHeadDim
constexpr int kNarrowHeadDim = 64;
constexpr int kWgmmaTileKeys[] = {128, 64};
constexpr int kListTileKeys = 32;  ///< of lists; a step takes several
constexpr int kStages[] = {2, 3, 4};

/// Has a consumer no registers to spare for shared parts of a formula?
bool is_tight(const Attend& attend, const WgmmaShape& shape) {
  const bool has_few = shape.e4m3_rows || shape.work_tiles > 1 || shape.tile_q == kWideBlockRows;
  const bool looks_ahead = consumer_of(shape, attend) == Consumer::kWgmmaTileGate;
  return has_few || looks_ahead || shape.qk_bits == 8 || shape.v_bits == 8;
}

/// Does the formula need so many registers that a step takes half as many keys? A core that reads k
/// does. So does a rest that is evaluated for each score; one whose values the lanes of a warp
/// compute for each other (shared_parts.hpp) does not.
bool is_busy(const Attend& attend, const WgmmaShape& shape) {
  if (attend.score.empty()) return false;
  const ScoreParts parts = split_score(attend.score);
  if (uses(parts.core, Variable::kK)) return true;
  if (parts.rest.empty()) return false;
  const auto shared = shared_parts(parts.rest);
  const bool is_shared = shared && !shape.gathers && !shape.packs_heads;
  return !is_shared || uses(shared->rest, Variable::kK) || is_tight(attend, shape);
}

/// Why there are no registers for queries; "" if there are.
std::string query_objection(const Attend& attend, const WgmmaShape& shape) {
  if (shape.head_dim > 2 * kPanelElements)
    return "registers have no room for rows of " + std::to_string(shape.head_dim) + " elements";
  if (shape.warpgroups() != 2)
    return std::to_string(shape.warpgroups()) + " warpgroups have no registers for them";
  switch (consumer_of(shape, attend)) {
    case Consumer::kWgmmaInt8:
      return "int8 products read them";
    case Consumer::kWgmmaTileGate:
      return "the next scores of a gate take their registers";
    default:
      return "";
  }
}

bool has_8_bits(const Attend& attend) { return attend.q_scale >= 0 || attend.v_scale >= 0; }

/// Of rows of widths that only 16-bit tiles have; "" if nothing is in the way.
std::string head_dim_objection(const Program& program) {
  const Attend& attend = attend_of(program);
  const int widths[] = {program.head_dim, value_dim(program)};
  const char* const names[] = {"head_dim ", "head_dim_v "};
  for (int n = 0; n < 2; ++n) {
    const std::string begin = names[n] + std::to_string(widths[n]) + ": ";
    if (std::ranges::count(kWgmmaHeadDims, widths[n]) == 0)
      return begin + "64, 80, 96, 112, 128, 192 and 256 are laid out";
    if (widths[n] % kPanelElements == 0 && widths[0] == widths[1]) continue;
    const std::string rows = begin + (widths[0] == widths[1] ? "rows are not whole panels of 64"
                                                             : "keys and values differ in width");
    if (has_8_bits(attend)) return rows + ", which integers have to be";
    if (attend.columns >= 0) return rows + ", which gathered keys have to be";
  }
  return "";
}

/// Of keys and values of e4m3, of which the producer makes 16-bit rows; "" if nothing is in the
/// way.
std::string code_objection(const Program& program) {
  if (!attends_to_codes(program)) return "";
  const std::string begin = "k and v of e4m3: ";
  if (attend_of(program).columns >= 0) return begin + "who gathers columns copies 16-bit rows";
  for (const int width : {program.head_dim, value_dim(program)}) {
    if (width % kPanelElements != 0)
      return begin + std::to_string(width) + " elements of a row are not whole panels of 64";
  }
  return "";
}

/// What in the program keeps it from this family whatever its tiles; "" if nothing.
std::string objection(const Program& program, const PassContext& context) {
  const Attend& attend = attend_of(program);
  const Choice<Loader>& loader = context.document.spec.loader;
  if (context.family == AttendFamily::kMma) return "asked for by the caller";
  if (context.relief.asks_for_mma && context.family != AttendFamily::kWgmma)
    return std::string(context.relief.reason);
  if (!context.target.has_wgmma) return context.target.name + " has no wgmma";
  if (!has_denominator(attend.normalise) && has_8_bits(attend))
    return "attention.normalise = " + std::string(name_of(attend.normalise)) +
           ": its 8-bit consumers weigh by a running maximum";
  if (std::string against = head_dim_objection(program); !against.empty()) return against;
  if (std::string against = code_objection(program); !against.empty()) return against;
  if (has_8_bits(attend) && program.head_dim > 2 * kPanelElements) {
    return "head_dim " + std::to_string(program.head_dim) +
           ": the product of 8-bit values has no registers of its own";
  }
  if (!loader.is_auto() && attend.columns < 0)
    return "loader \"cp_async\": wgmma takes what TMA has loaded";
  return "";
}

/// What keeps its key tiles from this family; "" if nothing.
std::string tile_k_objection(const WgmmaShape& shape) {
  if (std::ranges::count(kWgmmaTileKeys, shape.tile_k) != 0) return "";
  if (shape.tile_k != kListTileKeys || !shape.has_lists || shape.gathers)
    return "64 or 128 keys are multiplied at once";
  if (shape.has_gate) return "a gate leaves out products of 64 or 128 keys";
  if (shape.v_bits == 8) return "e4m3 values come in blocks of 64 keys";
  return "";
}

/// What keeps a shape from this family; "" if it fits.
std::string objection(const WgmmaShape& shape, const TileRequest& request) {
  const auto text = [](const char* name, int value) {
    return std::string(name) + " = " + std::to_string(value) + ": ";
  };
  const Choice<int>& warps = request.spec.warps;
  if (shape.e4m3_rows && shape.tile_q != kBlockRows)
    return text("tile.q", shape.tile_q) + "e4m3 keys and values are made 16-bit for 128 queries";
  if (shape.block_rows() != kBlockRows && shape.block_rows() != kWideBlockRows)
    return text("tile.q", shape.tile_q) + "the two warpgroups of a block have 128 rows";
  const bool is_narrow = shape.head_dim == kNarrowHeadDim && value_dim(shape) == kNarrowHeadDim;
  if (shape.tile_q == kWideBlockRows && (!is_narrow || shape.has_terms))
    return text("tile.q", shape.tile_q) + "three warpgroups have registers for head_dim 64 alone";
  if (shape.tile_q == kWideBlockRows && (shape.qk_bits == 8 || shape.v_bits == 8))
    return text("tile.q", shape.tile_q) + "three warpgroups have no registers for 8-bit operands";
  if (shape.tile_q == kWideBlockRows && shape.splits_kv)
    return text("tile.q", shape.tile_q) + "three warpgroups have no registers for partial results";
  if (shape.tile_q == kWideBlockRows && shape.gathers)
    return text("tile.q", shape.tile_q) + "a producer that gathers has the registers of a third";
  if (!warps.admits(shape.warps()))
    return text("tile.warps", warps.values.front()) + "the two warpgroups of a block have 8";
  if (std::string against = tile_k_objection(shape); !against.empty())
    return text("tile.k", shape.tile_k) + against;
  if (shape.step_keys() % shape.tile_k != 0) {
    return text("tile.k", shape.tile_k) + "at head_dim " + std::to_string(shape.head_dim) +
           " registers hold the scores of " + std::to_string(shape.step_keys()) + " keys";
  }
  if (std::ranges::count(kStages, shape.stages) == 0)
    return text("tile.stages", shape.stages) + "the rings of this family have 2 to 4";
  if (const auto violation =
          find_kept_violation({.tile_q = shape.tile_q, .tile_k = shape.tile_k}, request)) {
    return violation->message;
  }
  if (smem_bytes(shape) <= request.target.smem_bytes_per_block) return "";
  return text("tile.stages", shape.stages) + std::to_string(smem_bytes(shape)) +
         " bytes of shared memory";
}

/// Does the device choose how many items each work tile of a sequence is split into? With a gate,
/// gathered keys or values of e4m3 work tiles stay whole: what a gate decides, and how weights of
/// e4m3 are rounded, depends on the tiles before.
bool splits_by_itself(const Program& program) {
  const Attend& attend = attend_of(program);
  return program.batch != BatchLayout::kUniform && !attend.gate && attend.columns < 0 &&
         attend.v_scale < 0;
}

WgmmaShape shape_of(const TileShape& tiles, const Program& program, const PassContext& context) {
  const WgmmaShape shape{
      .tile_q = tiles.tile_q,
      .tile_k = tiles.tile_k,
      .stages = tiles.stages,
      .head_dim = tiles.head_dim,
      .most_step_keys = context.relief.most_step_keys,
      .keeps_queries = context.attend.queries.value == QueryPlace::kRegisters,
      .splits_kv = context.attend.split_kv.value > 1 || splits_by_itself(program),
      .head_dim_v = program.head_dim_v};
  return with_places(with_operands(shape, program), program, context.target);
}

/// All shapes in order of preference: as for mma, but for keys that nothing else has a say in. What
/// a gate does depends on its tiles: they are the same in both families.
std::vector<WgmmaShape> shapes_in_order(const Program& program, const TileRequest& request,
                                        const StagePreference& preference,
                                        const PassContext& context) {
  TileCandidates candidates = tile_candidates(request);
  const bool is_free = request.keep_k == 0 && !attend_of(program).gate.has_value();
  if ((is_free || request.gathers) && request.spec.k.is_auto())
    candidates.tile_k.assign(std::begin(kWgmmaTileKeys), std::end(kWgmmaTileKeys));
  if (is_free && request.spec.q.is_auto() && request.spec.warps.is_auto()) {
    candidates.tile_q = {kBlockRows};
    const Attend& attend = attend_of(program);
    const bool has_room = context.relief.most_warpgroups * kWarpgroupRows >= kWideBlockRows;
    const bool is_narrow =
        program.head_dim == kNarrowHeadDim && value_dim(program) == kNarrowHeadDim;
    if (is_narrow && attend.score.empty() && attend.sink.empty() && !has_8_bits(attend) &&
        has_room && program.batch == BatchLayout::kUniform && !attends_to_codes(program) &&
        !mask_is_costly(attend.mask))
      candidates.tile_q = {kWideBlockRows, kBlockRows};
  }
  std::vector<WgmmaShape> shapes;
  for (const int stages : preference.stages) {
    for (const int q : candidates.tile_q) {
      for (const int k : candidates.tile_k) {
        const WgmmaShape shape =
            shape_of({.tile_q = q, .tile_k = k, .stages = stages, .head_dim = program.head_dim},
                     program, context);
        if (preference.accepts(shape)) shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

WgmmaChoice choose(const Program& program, const TileRequest& request,
                   const std::optional<TileShape>& tuned, const PassContext& context) {
  if (std::string against = objection(program, context); !against.empty()) return {{}, against};
  const StagePreference preference = stage_preference(program, request);
  const auto why_stages = [&](const WgmmaShape& shape) {
    return stages_reason(preference, shape.stages, [&](int stages) {
      const TileShape tiles{.tile_q = shape.tile_q,
                            .tile_k = shape.tile_k,
                            .stages = stages,
                            .head_dim = shape.head_dim};
      const WgmmaShape other = shape_of(tiles, program, context);
      return preference.accepts(other) && objection(other, request).empty();
    });
  };
  if (tuned) {
    const WgmmaShape shape = shape_of(*tuned, program, context);
    const std::string against = objection(shape, request);
    if (against.empty()) return {shape, "measured", why_stages(shape)};
    if (context.family != AttendFamily::kWgmma && !find_violation(*tuned, request))
      return {{}, "measured: " + against};
  }
  std::string first;
  for (const WgmmaShape& shape : shapes_in_order(program, request, preference, context)) {
    const std::string against = objection(shape, request);
    if (against.empty())
      return {shape,
              "the tensor cores of " + context.target.name + (shape.gathers ? "" : " by TMA"),
              why_stages(shape)};
    if (first.empty()) first = against;
  }
  return {{}, first};
}

/// What a gate of scope warp skips depends on how many rows decide together: whoever compares
/// targets has to know.
void widen_gate(Gate& gate, const PassContext& context) {
  gate.scope = GateScope::kWarpgroup;
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/gate/scope", Code::kGateScope, Severity::kNote,
               "gate.scope: on " + context.target.name + " the " + std::to_string(kWarpgroupRows) +
                   " rows of a warpgroup decide together, not the " + std::to_string(kWarpRows) +
                   " of a warp"));
  d.notes.emplace_back(
      "wgmma multiplies 64 rows at once; the gate skips what all of them can miss");
  d.helps.emplace_back(
      "write \"loader\": \"cp_async\" to have the gate decide by 16 rows, with mma");
}

/// In a batch of sequences attend itself finds its tiles, so that no kernel before it can evaluate
/// the mask of their pairs. Attend with lists does not: a predictor has made these before.
void leave_pairs(Attend& attend, const Program& program, AttendPlan& plan) {
  if (!attend.pairs || program.batch == BatchLayout::kUniform || attend.list_indices >= 0) return;
  attend.pairs = false;
  plan.pairs = {false, Origin::kDerived,
                "a batch of " + std::string(name_of(program.batch)) +
                    " by wgmma: no kernel knows its tiles before attend"};
}

}  // namespace

WgmmaShape with_operands(WgmmaShape shape, const Program& program) {
  const Attend& attend = attend_of(program);
  shape.gathers = attend.columns >= 0;
  shape.has_lists = attend.list_indices >= 0;
  shape.has_gate = attend.gate.has_value();
  shape.has_sequence_tiles = program.batch != BatchLayout::kUniform;
  shape.packs_heads = shape.has_sequence_tiles && !has_tiles_of_heads(attend);
  shape.e4m3_rows = attends_to_codes(program);
  shape.asks_mask =
      !attend.mask.empty() && (key_ranges(attend.mask).empty() || has_long_bounds(attend));
  const bool has_own_keys = shape.gathers ? !shape.has_gate : shape.has_lists;
  const bool own_rows = shape.tile_q == kWarpgroupRows && has_own_keys;
  shape.work_tiles = own_rows ? kBlockRows / kWarpgroupRows : 1;
  const bool many_scales = attend.q_scale >= 0 && attend.qk_group == QuantGroup::kThread;
  const bool busy_gate = attend.gate && ((own_rows && !has_8_bits(attend)) || many_scales ||
                                         (attend.gate->skips_exp && attend.v_scale >= 0));
  shape.qk_bits = attend.q_scale >= 0 ? 8 : 16;
  shape.v_bits = attend.v_scale >= 0 ? 8 : 16;
  shape.has_column_bias = attend.column_bias >= 0;
  shape.has_terms = is_busy(attend, shape) || busy_gate;
  // A product with V that is added apart, beside biases or a loop in a loop.
  shape.has_terms |= shape.v_bits == 8 && (own_rows || shape.has_column_bias);
  // Tiles of a step, beside 16-bit queries.
  shape.has_terms |= shape.tile_k == kListTileKeys && shape.qk_bits == 16;
  shape.keeps_queries &= query_objection(attend, shape).empty();
  return with_value_places(shape, attend);
}

WgmmaChoice choose_wgmma(const Program& program, const TileRequest& request,
                         const std::optional<TileShape>& tuned, const PassContext& context) {
  WgmmaChoice choice = choose(program, request, tuned, context);
  if (choice.shape || context.family != AttendFamily::kWgmma) return choice;
  context.diagnostics
      .add(at_field(context.document, "", Code::kUnsupported, Severity::kError,
                    "attend: the wgmma family was asked for, but cannot be"))
      .notes.push_back(choice.reason);
  return choice;
}

bool takes_tiles(const TileShape& tiles, const Program& program, const TileRequest& request,
                 const PassContext& context) {
  return objection(program, context).empty() &&
         objection(shape_of(tiles, program, context), request).empty();
}

Program note_family(Program program, const WgmmaChoice& choice, const PassContext& context) {
  AttendPlan& plan = context.attend;
  if (!choice.shape) {
    plan.family = {AttendFamily::kMma, Origin::kDerived, choice.reason};
    note_mma_variant(program, plan);
    return program;
  }
  const WgmmaShape& shape = *choice.shape;
  const Origin origin = Origin::kDerived;
  plan.family = {AttendFamily::kWgmma, Origin::kDefault, choice.reason};
  plan.work_tiles = {shape.work_tiles, origin,
                     shape.work_tiles == 1 ? "one query tile, shared by all warpgroups"
                     : shape.gathers ? "one for each warpgroup: what either keeps is gathered once"
                                     : "one for each warpgroup, with a list of its own"};
  plan.warpgroups = {shape.warpgroups(), origin,
                     shape.work_tiles == 1 ? "tile.q / 64; one more loads"
                                           : "one for each work tile; one more loads"};
  plan.step_keys = {shape.step_keys(), origin,
                    shape.step_keys() == shape.most_step_keys && !context.relief.reason.empty()
                        ? std::string(context.relief.reason)
                        : "as many as have scores that fit the registers at head_dim " +
                              std::to_string(shape.head_dim)};
  plan.value_stages = {shape.value_stages, origin,
                       shape.value_stages == shape.stages  ? "tile.stages, like those of keys"
                       : shape.value_stages < shape.stages ? "only those that count are loaded"
                       : program.batch == BatchLayout::kUniform
                           ? "those of lists and formulas come late: one more"
                           : "one more, which launches with many rows for each key use"};
  plan.query_buffers = {shape.query_buffers, origin,
                        shape.query_buffers == 1 ? "shared memory has no room for two"
                                                 : "the next queries come while these are in use"};
  if (std::string against = query_objection(attend_of(program), shape); !against.empty())
    plan.queries = {QueryPlace::kSharedMemory, origin, std::move(against)};
  if (shape.e4m3_rows)
    plan.code_places = {shape.code_places, origin,
                        "codes that are under way, of the keys or the values of a step each"};
  const bool is_open = context.document.spec.tile.split_kv.is_auto();
  if (splits_by_itself(program) && is_open)
    plan.split_kv = {0, Origin::kDefault,
                     "0: as many as keep the multiprocessors busy, found on the device"};
  Attend& attend = attend_of(program);
  leave_pairs(attend, program, plan);
  note_wgmma_variant(shape, program, plan);
  if (attend.gate && attend.gate->scope == GateScope::kWarp) widen_gate(*attend.gate, context);
  return program;
}

}  // namespace lacuna
