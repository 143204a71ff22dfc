// Chooses tile sizes, stages, warps, order and loader: the first combination of the user's values
// (else of the defaults) that fits the target.
//
// A gate decides about whole tiles, so the same spec means something else with other tiles. Where
// the default shape does not fit, a gate gets a smaller one only with a warning. With a predictor,
// tiles divide its own; lists and integers are then made for attend's tiles. A tuned shape goes
// before all others wherever it is legal. The wgmma family (choose_wgmma.cpp) goes before mma.
#include <algorithm>

#include "compiler/ir/coded_rows.hpp"
#include "compiler/passes/target/choose_order.hpp"
#include "compiler/passes/target/choose_wgmma.hpp"
#include "compiler/target/choose_variant.hpp"

namespace lacuna {
namespace {

std::string shape_reason(const PassContext& context, int head_dim, bool has_gate, bool is_first) {
  if (!is_first) {
    return "largest that fits the shared memory and registers of " + context.target.name +
           " at head_dim " + std::to_string(head_dim);
  }
  return has_gate ? "the same on every target where it fits, because what a gate does depends on it"
                  : "good on every target";
}

template <class T>
Chosen<T> chosen(const Choice<T>& choice, T value, std::string reason) {
  if (choice.is_auto()) return {value, Origin::kDefault, std::move(reason)};
  return {value, Origin::kSpec, choice.values.size() > 1 ? "first of the list that fits" : ""};
}

std::vector<TileShape> shapes_in_order(const TileCandidates& candidates, const Program& program) {
  const Attend& attend = attend_of(program);
  TileShape shape{.head_dim = program.head_dim, .head_dim_v = program.head_dim_v};
  shape.votes = attend.gate && attend.gate->scope == GateScope::kTile;
  shape.values_on_demand = attend.gate && attend.gate->skips_v_load;
  shape.qk_bits = attend.q_scale >= 0 ? 8 : 16;
  shape.v_bits = attend.v_scale >= 0 ? 8 : 16;
  shape.e4m3_rows = attends_to_codes(program);
  shape.v_of_k = has_tiles_of_keys(program);
  std::vector<TileShape> shapes;
  for (const int stages : candidates.stages) {
    for (const int q : candidates.tile_q) {
      for (const int k : candidates.tile_k) {
        shape.stages = stages, shape.tile_q = q, shape.tile_k = k;
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

/// Where the user asked for too much: the first field that was written.
const char* written_field(const TileRequest& request) {
  const TileSpec& tile = request.spec;
  if (!tile.k.is_auto()) return "/tile/k";
  if (!tile.q.is_auto()) return "/tile/q";
  if (!tile.warps.is_auto()) return "/tile/warps";
  return tile.stages.is_auto() && request.keep_k != 0 ? "/predictor/tile/k" : "/tile/stages";
}

/// The place of a violation: where the author wrote what it says; of too large a tile, a field that
/// has legal values.
std::string place_of(const TileViolation& violation, const TileRequest& request,
                     const std::vector<LegalValues>& legal, const SpecDocument& document) {
  const std::string_view pointer = violation.pointer != nullptr ? violation.pointer : "";
  if (pointer == "/tile/q" || pointer == "/tile/k")
    return written_place(pointer.substr(pointer.size() - 1), request);
  if (!pointer.empty()) return std::string(pointer);
  const std::string_view written = written_field(request);
  const bool helps = std::ranges::count(legal, written, &LegalValues::pointer) > 0;
  const auto other = std::ranges::find_if(legal, [&](const LegalValues& values) {
    return document.spans.contains(std::string(values.pointer));
  });
  return std::string(helps || other == legal.end() ? written : other->pointer);
}

void report_violation(const PassContext& context, const Program& program,
                      const TileRequest& request, const std::vector<TileShape>& shapes,
                      const TileViolation& violation) {
  const auto is_legal = [&](const TileShape& other, const TileRequest& wanted) {
    return !find_violation(other, wanted) || takes_tiles(other, program, wanted, context);
  };
  std::vector<LegalValues> legal = nearest_legal({shapes.front()}, request, is_legal);
  if (legal.empty()) legal = nearest_legal(shapes, request, is_legal);
  const std::string pointer = place_of(violation, request, legal, context.document);
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, pointer, violation.code, Severity::kError, violation.message));
  d.notes.push_back(violation.note);
  std::string text;
  for (const LegalValues& values : legal) text += (text.empty() ? "" : ", or ") + values.text;
  if (!text.empty()) d.helps.push_back("nearest legal values: " + text);
}

void report_spill(const PassContext& context, const TileRequest& request, const TileShape& shape) {
  const std::string reason = spill_reason(shape, context.target);
  if (reason.empty()) return;
  Diagnostic& d = context.diagnostics.add(at_field(context.document, written_field(request),
                                                   Code::kOccupancy, Severity::kPerf, reason));
  d.helps.emplace_back("tile.k = 32");
}

bool is_tuned(const PassContext& context, const TileShape& shape) {
  const TunedTiles* tuned = context.tuned;
  return tuned != nullptr && shape.tile_q == tuned->tile_q && shape.tile_k == tuned->tile_k &&
         (tuned->stages == 0 || shape.stages == tuned->stages);
}

/// The value's origin becomes the record, unless the spec left no choice.
template <class T>
void note_tuned(const TunedTiles& tuned, const Choice<T>& choice, Chosen<T>& value) {
  if (choice.values.size() == 1) return;
  value.origin = Origin::kTuned;
  value.reason = tuned.record;
}

/// The value becomes the measured one, if there is one that the spec allows.
template <class T>
void take_measured(const PassContext& context, const std::optional<T>& measured,
                   const Choice<T>& choice, Chosen<T>& value) {
  if (!measured || !choice.admits(*measured)) return;
  value.value = *measured;
  note_tuned(*context.tuned, choice, value);
}

/// The first legal shape; one that spills only if all do.
std::optional<TileShape> choose_shape(const PassContext& context, const Program& program,
                                      const TileRequest& request,
                                      const std::vector<TileShape>& shapes) {
  std::optional<TileViolation> first;
  std::optional<TileShape> spilling;
  for (const TileShape& shape : shapes) {
    auto violation = find_violation(shape, request);
    if (!violation && spill_reason(shape, context.target).empty()) return shape;
    if (!violation && !spilling) spilling = shape;
    if (violation && !first) first = std::move(violation);
  }
  if (spilling) {
    report_spill(context, request, *spilling);
  } else {
    report_violation(context, program, request, shapes, *first);
  }
  return spilling;
}

/// The tiles of attend in one of its families, and why they and their stages are these where the
/// spec leaves them open.
struct TileDecision {
  TileShape shape;
  std::string reason, stages_reason;
};

void warn_of_smaller_gate(const PassContext& context, const TileShape& first,
                          const TileShape& shape) {
  const auto text = [](const TileShape& s) {
    return std::to_string(s.tile_q) + "x" + std::to_string(s.tile_k);
  };
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, "/gate", Code::kTileShape, Severity::kWarning,
               "the gate decides about tiles of " + text(shape) + " on " + context.target.name +
                   ", where " + text(first) + " do not fit"));
  d.notes.push_back("with other tiles the same gate skips other work");
  d.helps.push_back("to have one meaning everywhere, write tile.q = " +
                    std::to_string(shape.tile_q) + " and tile.k = " + std::to_string(shape.tile_k));
}

/// A tile of attend within one of the predictor's.
Chosen<int> tile_within(const char* side, int tile, int keep) {
  const std::string whole = "predictor.tile." + std::string(side);
  if (tile == keep) return {tile, Origin::kDerived, "that of " + whole};
  return {tile, Origin::kDerived,
          "the largest divisor of " + whole + " = " + std::to_string(keep) + " that fits"};
}

void note_tiles(const PassContext& context, const TileRequest& request,
                const TileDecision& decision) {
  const TileSpec& tile = request.spec;
  const TileShape& shape = decision.shape;
  AttendPlan& plan = context.attend;
  plan.tile_q = chosen(tile.q, shape.tile_q, decision.reason);
  plan.tile_k = chosen(tile.k, shape.tile_k, decision.reason);
  if (tile.q.is_auto() && request.keep_q != 0)
    plan.tile_q = tile_within("q", shape.tile_q, request.keep_q);
  if (tile.k.is_auto() && request.keep_k != 0 && !request.gathers)
    plan.tile_k = tile_within("k", shape.tile_k, request.keep_k);
  if (tile.q.is_auto() && !tile.warps.is_auto())
    plan.tile_q = {shape.tile_q, Origin::kDerived, "16 * tile.warps"};
  plan.stages = chosen(tile.stages, shape.stages, decision.stages_reason);
  const int warps = shape.warps() * plan.work_tiles.value;
  std::string why = "tile.q / 16: one mma of rows each";
  if (plan.work_tiles.value != 1) why = "work_tiles * tile.q / 16";
  if (const int parts = shape.warps() / shape.row_warps(); parts > 1)
    why = "tile.q / 16 * " + std::to_string(parts) + ": 16 rows of O, " +
          std::to_string(value_dim(shape) / parts) + " of its columns each";
  plan.warps = tile.warps.is_auto() ? Chosen<int>{warps, Origin::kDerived, std::move(why)}
                                    : chosen(tile.warps, warps, "");
}

Chosen<TileOrder> choose_order(const PassContext& context, const TileRequest& request,
                               const Program& program) {
  const Choice<TileOrder>& choice = request.spec.order;
  const Chosen<TileOrder> usual = default_order(program, context.document.spec, request.gathers);
  Chosen<TileOrder> order =
      choice.is_auto() ? usual
                       : chosen(choice, request.gathers ? usual.value : choice.values.front(), "");
  if (context.tuned != nullptr && !request.gathers)
    take_measured(context, context.tuned->order, choice, order);
  return order;
}

/// Why a row's tiles stay with one block; "" if they need not.
std::string split_objection(const VariantSpec& spec, const TileRequest& request) {
  if (spec.gate) return "what a gate decides depends on the tiles before in the row";
  if (spec.quantise.v_bits == 8)
    return "weights are rounded to e4m3 by the largest of the tiles before in the row";
  if (request.gathers) return "the columns of a row are gathered by one block";
  return "";
}

Chosen<int> choose_split_kv(const PassContext& context, const TileRequest& request) {
  const Choice<int>& choice = request.spec.split_kv;
  const std::string against = split_objection(context.document.spec, request);
  if (!against.empty()) return {1, choice.is_auto() ? Origin::kDefault : Origin::kDerived, against};
  const int usual = choice.is_auto() ? 1 : choice.values.front();
  Chosen<int> split = chosen(choice, usual, "rows are split only where a measurement was better");
  if (context.tuned != nullptr && context.tuned->split_kv > 0)
    take_measured(context, std::optional(context.tuned->split_kv), choice, split);
  return split;
}

/// Where products take queries from, by the spec, a measurement and the relief. Whether registers
/// have room for them is known only with the shape (choose_wgmma.cpp).
Chosen<QueryPlace> choose_queries(const PassContext& context, const TileRequest& request) {
  const Choice<QueryPlace>& choice = request.spec.queries;
  const QueryPlace usual = choice.is_auto() ? QueryPlace::kRegisters : choice.values.front();
  Chosen<QueryPlace> queries = chosen(choice, usual, "products need not read them again");
  if (context.tuned != nullptr) take_measured(context, context.tuned->queries, choice, queries);
  if (!context.relief.keeps_queries && choice.admits(QueryPlace::kSharedMemory))
    return {QueryPlace::kSharedMemory, Origin::kDerived, std::string(context.relief.reason)};
  return queries;
}

void note_loader(const PassContext& context, const TileRequest& request) {
  const Choice<Loader>& choice = context.document.spec.loader;
  const Loader loader = request.gathers ? Loader::kGather : Loader::kCpAsync;
  Chosen<Loader>& plan = context.attend.loader;
  if (context.attend.family.value == AttendFamily::kWgmma && !request.gathers) {
    plan = {Loader::kTma, Origin::kDerived, "comes with wgmma"};
    return;
  }
  plan = chosen(choice, loader,
                request.gathers ? "columns of " + std::to_string(request.keep_k) + " keys"
                                : "runs on every target");
  if (!choice.admits(loader))
    plan = {loader, Origin::kDerived, "every visible key is kept: there is nothing to gather"};
}

/// May tile sizes change without changing what the caller passes or gets? Not with a gate, lists
/// passed by the caller, or a parameter that has a value for each tile.
bool has_tiles_of_its_own(const Program& program) {
  const auto has_tiles = [](const ParamSpec& param) {
    return std::ranges::count(param.symbol.shape, ParamAxis::kQTiles, &ParamDim::axis) +
               std::ranges::count(param.symbol.shape, ParamAxis::kKTiles, &ParamDim::axis) !=
           0;
  };
  const Attend& attend = attend_of(program);
  const bool has_callers_lists = attend.list_indices >= 0 && find_op<Compact>(program) == nullptr;
  return !attend.gate && !has_callers_lists && std::ranges::none_of(program.params, has_tiles);
}

/// Without those of more keys than the relief leaves, where there are others.
void keep_relieved(std::vector<TileShape>& shapes, const Program& program,
                   const TileRequest& request, const Relief& relief) {
  if (!request.spec.k.is_auto() || !has_tiles_of_its_own(program)) return;
  std::vector<TileShape> shorter = shapes;
  for (TileShape& shape : shorter) shape.tile_k = std::min(shape.tile_k, relief.most_tile_k);
  std::erase_if(shorter,
                [&](const TileShape& s) { return find_violation(s, request).has_value(); });
  if (!shorter.empty()) shapes = std::move(shorter);
}

/// The mma family's; nothing, with a diagnostic, if no shape is legal.
std::optional<TileDecision> choose_mma_tiles(const PassContext& context, const Program& program,
                                             const TileRequest& request,
                                             const std::optional<TileShape>& tuned, bool has_gate,
                                             std::vector<TileShape> shapes) {
  const TileShape usual = shapes.front();
  if (tuned) shapes.insert(shapes.begin(), *tuned);
  const std::optional<TileShape> shape = choose_shape(context, program, request, shapes);
  if (!shape) return std::nullopt;
  const bool is_usual = shape->tile_q == usual.tile_q && shape->tile_k == usual.tile_k;
  const bool is_open = request.spec.q.is_auto() || request.spec.k.is_auto();
  if (has_gate && !is_usual && !is_tuned(context, *shape) && is_open)
    warn_of_smaller_gate(context, usual, *shape);
  return TileDecision{*shape, shape_reason(context, usual.head_dim, has_gate, is_usual),
                      kLeastStagesReason};
}

TileDecision wgmma_tiles(const WgmmaChoice& choice, bool has_gate) {
  const WgmmaShape& shape = *choice.shape;
  return {{.tile_q = shape.tile_q,
           .tile_k = shape.tile_k,
           .stages = shape.stages,
           .head_dim = shape.head_dim,
           .head_dim_v = shape.head_dim_v},
          has_gate
              ? "the same on every target where it fits, because what a gate does depends on it"
              : "64 queries for each of " + std::to_string(shape.warpgroups()) +
                    " warpgroups, and keys whose scores fit their registers",
          choice.stages_reason};
}

/// Lists and groups of integers are those of attend's tiles.
void set_tiles(Program& program, int tile_q, int tile_k) {
  Attend& attend = attend_of(program);
  attend.tile_q = tile_q;
  attend.tile_k = tile_k;
  const bool has_integers = attend.q_scale >= 0;
  if (has_integers) attend.qk_tile_q = tile_q, attend.qk_tile_k = tile_k;
  for (Node& node : program.nodes) {
    if (auto* compact = std::get_if<Compact>(&node.op)) {
      compact->tile_q = tile_q;
      compact->tile_k = tile_k;
    } else if (auto* quantise = std::get_if<Quantise>(&node.op); quantise && has_integers) {
      if (node.results[0] == attend.q) quantise->tile = tile_q;
      if (node.results[0] == attend.k) quantise->tile = tile_k;
    }
  }
}

}  // namespace

Program choose_tiles(Program program, const PassContext& context) {
  const TileSpec& tile = context.document.spec.tile;
  const TileRequest request = tile_request(program, tile, context.target);
  const bool has_gate = attend_of(program).gate.has_value();
  context.attend.split_kv = choose_split_kv(context, request);
  context.attend.queries = choose_queries(context, request);
  auto shapes = shapes_in_order(tile_candidates(request), program);
  if (context.relief.asks_for_mma) keep_relieved(shapes, program, request, context.relief);
  const std::optional<TileShape> tuned = tuned_shape(context.tuned, tile, shapes.front());
  const WgmmaChoice wgmma = choose_wgmma(program, request, tuned, context);
  program = note_family(std::move(program), wgmma, context);
  const std::optional<TileDecision> decision =
      wgmma.shape ? wgmma_tiles(wgmma, has_gate)
                  : choose_mma_tiles(context, program, request, tuned, has_gate, std::move(shapes));
  if (!decision) return program;

  const TileShape& shape = decision->shape;
  note_tiles(context, request, *decision);
  if (is_tuned(context, shape)) {
    note_tuned(*context.tuned, tile.q, context.attend.tile_q);
    note_tuned(*context.tuned, tile.k, context.attend.tile_k);
    if (context.tuned->stages > 0) note_tuned(*context.tuned, tile.stages, context.attend.stages);
  }
  note_loader(context, request);
  context.attend.order = choose_order(context, request, program);
  attend_of(program).order = context.attend.order.value;
  set_tiles(program, shape.tile_q, shape.tile_k);
  return program;
}

}  // namespace lacuna
