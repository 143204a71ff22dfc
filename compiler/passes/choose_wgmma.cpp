#include "compiler/passes/choose_wgmma.hpp"

#include <algorithm>

namespace lacuna {
namespace {

/// Rows are whole panels, and the registers of a consumer are planned for each of these.
constexpr int kHeadDims[] = {64, 128, 256};
constexpr int kTileRows = 128;      ///< of two consumer warpgroups
constexpr int kWideTileRows = 192;  ///< of three, whose registers hold rows of kNarrowHeadDim
constexpr int kNarrowHeadDim = 64;
constexpr int kTileKeys[] = {128, 64};
constexpr int kStages[] = {2, 4};  ///< a ring's place and phase are bits of one counter

/// What in the program keeps it from this family whatever its tiles; "" if nothing.
std::string objection(const Program& program, const PassContext& context) {
  const Attend& attend = attend_of(program);
  const Choice<Loader>& loader = context.document.spec.loader;
  if (context.family == AttendFamily::kMma) return "asked for by the caller";
  if (!context.target.has_wgmma) return context.target.name + " has no wgmma";
  if (program.head_dim % kPanelElements != 0) {
    return "head_dim " + std::to_string(program.head_dim) + ": rows are not whole panels of " +
           std::to_string(kPanelElements);
  }
  if (std::ranges::count(kHeadDims, program.head_dim) == 0)
    return "head_dim " + std::to_string(program.head_dim) + ": 64, 128 and 256 are laid out";
  if (attend.columns >= 0) return "columns are gathered by cp.async";
  if (attend.q_scale >= 0 || attend.v_scale >= 0) return "8-bit operands are those of mma.sync";
  if (!loader.is_auto()) return "loader \"cp_async\": wgmma takes what TMA has loaded";
  return "";
}

/// What keeps a shape from this family; "" if it fits.
std::string objection(const WgmmaShape& shape, const TileRequest& request) {
  const auto text = [](const char* name, int value) {
    return std::string(name) + " = " + std::to_string(value) + ": ";
  };
  const Choice<int>& warps = request.spec.warps;
  if (shape.tile_q != kTileRows && shape.tile_q != kWideTileRows)
    return text("tile.q", shape.tile_q) + "two warpgroups have 128 rows";
  if (shape.tile_q == kWideTileRows && (shape.head_dim != kNarrowHeadDim || shape.has_score))
    return text("tile.q", shape.tile_q) + "three warpgroups have registers for head_dim 64 alone";
  if (!warps.is_auto() && std::ranges::count(warps.values, shape.warps()) == 0)
    return text("tile.warps", warps.values.front()) + "two warpgroups have 8";
  if (std::ranges::count(kTileKeys, shape.tile_k) == 0)
    return text("tile.k", shape.tile_k) + "64 or 128 keys are multiplied at once";
  if (shape.step_keys() % shape.tile_k != 0) {
    return text("tile.k", shape.tile_k) + "at head_dim " + std::to_string(shape.head_dim) +
           " registers hold the scores of " + std::to_string(shape.step_keys()) + " keys";
  }
  if (std::ranges::count(kStages, shape.stages) == 0)
    return text("tile.stages", shape.stages) + "the rings of this family have 2 or 4";
  if (const auto violation =
          find_kept_violation({.tile_q = shape.tile_q, .tile_k = shape.tile_k}, request)) {
    return violation->message;
  }
  if (smem_bytes(shape) <= request.target.smem_bytes_per_block) return "";
  return text("tile.stages", shape.stages) + std::to_string(smem_bytes(shape)) +
         " bytes of shared memory";
}

bool has_score(const Program& program) { return !attend_of(program).score.empty(); }

/// Two query tiles where they fit, so that the next one is loaded in time.
WgmmaShape with_query_buffers(WgmmaShape shape, const Target& target) {
  shape.query_buffers = 2;
  if (smem_bytes(shape) > target.smem_bytes_per_block) shape.query_buffers = 1;
  return shape;
}

WgmmaShape shape_of(const TileShape& tiles, bool has_score, const PassContext& context) {
  return with_query_buffers({.tile_q = tiles.tile_q,
                             .tile_k = tiles.tile_k,
                             .stages = tiles.stages,
                             .head_dim = tiles.head_dim,
                             .has_score = has_score},
                            context.target);
}

/// All shapes in order of preference: as for mma, but for keys that nothing else has a say in. What
/// a gate does depends on its tiles: they are the same in both families.
std::vector<WgmmaShape> shapes_in_order(const Program& program, const TileRequest& request,
                                        const PassContext& context) {
  TileCandidates candidates = tile_candidates(request);
  const bool is_free = request.keep_k == 0 && !attend_of(program).gate.has_value();
  if (is_free && request.spec.k.is_auto())
    candidates.tile_k.assign(std::begin(kTileKeys), std::end(kTileKeys));
  if (is_free && request.spec.q.is_auto() && request.spec.warps.is_auto())
    candidates.tile_q = {kWideTileRows, kTileRows};
  std::vector<WgmmaShape> shapes;
  for (const int stages : candidates.stages) {
    for (const int q : candidates.tile_q) {
      for (const int k : candidates.tile_k) {
        shapes.push_back(shape_of(
            {.tile_q = q, .tile_k = k, .stages = stages, .head_dim = program.head_dim},
            has_score(program), context));
      }
    }
  }
  return shapes;
}

WgmmaChoice choose(const Program& program, const TileRequest& request,
                   const std::optional<TileShape>& tuned, const PassContext& context) {
  if (std::string against = objection(program, context); !against.empty()) return {{}, against};
  if (tuned) {
    const WgmmaShape shape = shape_of(*tuned, has_score(program), context);
    const std::string against = objection(shape, request);
    if (against.empty()) return {shape, "measured"};
    if (context.family != AttendFamily::kWgmma && !find_violation(*tuned, request))
      return {{}, "measured: " + against};
  }
  std::string first;
  for (const WgmmaShape& shape : shapes_in_order(program, request, context)) {
    const std::string against = objection(shape, request);
    if (against.empty()) return {shape, "the tensor cores of " + context.target.name + " by TMA"};
    if (first.empty()) first = against;
  }
  return {{}, first};
}

}  // namespace

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

Program note_family(Program program, const WgmmaChoice& choice, const PassContext& context) {
  AttendPlan& plan = context.attend;
  if (!choice.shape) {
    plan.family = {AttendFamily::kMma, Origin::kDerived, choice.reason};
    return program;
  }
  const WgmmaShape& shape = *choice.shape;
  const Origin origin = Origin::kDerived;
  plan.family = {AttendFamily::kWgmma, Origin::kDefault, choice.reason};
  plan.warpgroups = {shape.warpgroups(), origin, "tile.q / 64; one more loads"};
  plan.step_keys = {shape.step_keys(), origin,
                    "whose scores fit the registers at head_dim " + std::to_string(shape.head_dim)};
  plan.query_buffers = {shape.query_buffers, origin,
                        shape.query_buffers == 1 ? "shared memory has no room for two"
                                                 : "the next queries come while these are in use"};
  Attend& attend = attend_of(program);
  if (attend.gate && attend.gate->scope == GateScope::kWarp)
    attend.gate->scope = GateScope::kWarpgroup;
  return program;
}

}  // namespace lacuna
