// Chooses tile sizes, stages, warps, order and loader: the first combination of the user's values
// (else of the defaults) that fits the target.
//
// A gate decides about whole tiles, so the same spec means something else with other tiles. Where
// the default shape does not fit, a gate gets a smaller one only with a warning.
#include "compiler/passes/tile_choice.hpp"

namespace lacuna {
namespace {

std::string shape_reason(const PassContext& context, int head_dim, bool has_gate, bool is_first) {
  if (!is_first) {
    return "largest that fits the shared memory and registers of " + context.target.name +
           " at head_dim " + std::to_string(head_dim);
  }
  return has_gate ? "what a gate does depends on it: the same wherever it fits"
                  : "good on every target";
}

template <class T>
Chosen<T> chosen(const Choice<T>& choice, T value, std::string reason) {
  if (choice.is_auto()) return {value, Origin::kDefault, std::move(reason)};
  return {value, Origin::kSpec, choice.values.size() > 1 ? "first of the list that fits" : ""};
}

std::vector<TileShape> shapes_in_order(const TileCandidates& candidates, int head_dim,
                                       const std::optional<Gate>& gate) {
  const bool votes = gate && gate->scope == GateScope::kTile;
  const bool values_on_demand = gate && gate->skips_v_load;
  std::vector<TileShape> shapes;
  for (const int stages : candidates.stages) {
    for (const int q : candidates.tile_q) {
      for (const int k : candidates.tile_k) {
        shapes.push_back({q, k, stages, head_dim, votes, values_on_demand});
      }
    }
  }
  return shapes;
}

/// Where the user asked for too much: the first field that was written.
const char* written_field(const TileSpec& tile) {
  if (!tile.k.is_auto()) return "/tile/k";
  if (!tile.q.is_auto()) return "/tile/q";
  return tile.warps.is_auto() ? "/tile/stages" : "/tile/warps";
}

void report_violation(const PassContext& context, const TileShape& shape,
                      const TileViolation& violation) {
  const TileSpec& tile = context.document.spec.tile;
  const char* pointer = violation.pointer != nullptr ? violation.pointer : written_field(tile);
  Diagnostic& d = context.diagnostics.add(
      at_field(context.document, pointer, violation.code, Severity::kError, violation.message));
  d.notes.push_back(violation.note);
  std::string legal;
  for (const std::string& value : nearest_legal(shape, tile.warps, context.target)) {
    legal += (legal.empty() ? "" : ", or ") + value;
  }
  if (!legal.empty()) d.helps.push_back("nearest legal values: " + legal);
}

std::optional<TileShape> choose_shape(const PassContext& context,
                                      const std::vector<TileShape>& shapes) {
  const bool limited = context.target.kind == TargetKind::kCuda;
  std::optional<TileViolation> first;
  for (const TileShape& shape : shapes) {
    if (!limited) return shape;
    auto violation = find_violation(shape, context.document.spec.tile.warps, context.target);
    if (!violation) return shape;
    if (!first) first = std::move(violation);
  }
  report_violation(context, shapes.front(), *first);
  return std::nullopt;
}

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

}  // namespace

Program choose_tiles(Program program, const PassContext& context) {
  Attend& attend = attend_of(program);
  const TileSpec& tile = context.document.spec.tile;
  const bool has_gate = attend.gate.has_value();
  const auto shapes = shapes_in_order(tile_candidates(tile), program.head_dim, attend.gate);
  const std::optional<TileShape> shape = choose_shape(context, shapes);
  if (!shape) return program;

  const TileShape& first = shapes.front();
  const bool is_first = shape->tile_q == first.tile_q && shape->tile_k == first.tile_k;
  if (has_gate && !is_first && (tile.q.is_auto() || tile.k.is_auto())) {
    warn_of_smaller_gate(context, first, *shape);
  }
  const std::string reason = shape_reason(context, program.head_dim, has_gate, is_first);
  AttendPlan& plan = context.attend;
  plan.tile_q = chosen(tile.q, shape->tile_q, reason);
  if (tile.q.is_auto() && !tile.warps.is_auto()) {
    plan.tile_q = {shape->tile_q, Origin::kDerived, "16 * tile.warps"};
  }
  plan.tile_k = chosen(tile.k, shape->tile_k, reason);
  plan.stages =
      chosen(tile.stages, shape->stages, "loads of the next tile overlap this one's arithmetic");
  plan.warps = tile.warps.is_auto() ? Chosen<int>{shape->warps(), Origin::kDerived,
                                                  "tile.q / 16: one mma of rows each"}
                                    : chosen(tile.warps, shape->warps(), "");
  const TileOrder order = tile.order.is_auto() ? TileOrder::kAscending : tile.order.values.front();
  plan.order = chosen(tile.order, order, "keys as they lie in memory");
  plan.loader = chosen(context.document.spec.loader, Loader::kCpAsync, "runs on every target");

  attend.tile_q = shape->tile_q;
  attend.tile_k = shape->tile_k;
  attend.order = order;
  return program;
}

}  // namespace lacuna
