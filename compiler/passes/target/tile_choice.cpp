#include "compiler/passes/target/tile_choice.hpp"

#include <algorithm>
#include <cstdlib>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

// Preference: 128 queries share each K/V tile among 8 warps; 64 keys keep S, P and O of a warp in
// registers; two stages overlap the loads of one tile with the arithmetic of another. Smaller ones
// follow for large heads on targets with little shared memory.
const std::vector kDefaultTileQ{128, 64, 32};
const std::vector kDefaultTileK{64, 32};
const std::vector kDefaultStages{2};
/// Rows wider than those of other heads, of which fewer have room.
const std::vector kWideTileQ{64, 32, 16};
const std::vector kWideTileK{64, 32, 16};
/// A gathered row has the predictor's queries: only its keys can shrink.
const std::vector kGatheredTileK{64, 32, 16};
constexpr int kLeastStages = 2;
constexpr int kKeysOfByteStep = 32;
/// From here on the output of a warp leaves few registers: measured with ptxas 13.0.
constexpr int kWideHeadDim = 128;

const std::vector<int>& preferred(const Choice<int>& choice, const std::vector<int>& defaults) {
  return choice.is_auto() ? defaults : choice.values;
}

std::string shape_text(const TileShape& shape) {
  return std::to_string(shape.tile_q) + "x" + std::to_string(shape.tile_k) + " with " +
         std::to_string(shape.stages) + " stages at head_dim " + std::to_string(shape.head_dim);
}

/// Rows that the block's threads load together; 8 neighbours share a row of whole 128-byte lines,
/// 4 of a single warp (templates/loader/thread_share.cuh).
int rows_per_pass(const TileShape& shape) {
  const int chunks = shape.head_dim / 8;  // of 16 bytes
  const int lanes = std::min(shape.warps() == 1 ? 4 : 8, chunks & -chunks);
  return shape.threads() / lanes;
}

std::string tile_text(const char* name, int value) {
  return std::string(name) + " = " + std::to_string(value);
}

/// One side of a tile against the predictor's: whole tiles of attend in each of the predictor's.
std::optional<TileViolation> check_kept(const char* side, int tile, int keep, bool must_be_equal,
                                        const std::string& why_equal, const char* pointer) {
  const std::string name = std::string("tile.") + side;
  if (must_be_equal && tile != keep) {
    return TileViolation{Code::kTileShape,
                         name + ": expected " + std::to_string(keep) + ", as predictor." + name +
                             ", got " + std::to_string(tile),
                         why_equal, pointer};
  }
  if (keep % tile == 0) return std::nullopt;
  return TileViolation{Code::kTileShape,
                       tile_text(name.c_str(), tile) + ": predictor." + name + " = " +
                           std::to_string(keep) + " is not a whole number of such tiles",
                       "a tile that the predictor keeps is visited in whole tiles of attend",
                       pointer};
}

std::string per_tile_reason(const std::string& parameter) {
  return "the predictor reads " + parameter + ", which has one value for each tile of attend";
}

/// What integers ask of the tiles that they are grouped and multiplied in.
std::optional<TileViolation> check_integers(const TileShape& shape, const TileRequest& request) {
  const bool per_thread = shape.qk_bits == 8 && request.group == QuantGroup::kThread;
  if ((per_thread || shape.v_bits == 8) && shape.tile_k % kKeysOfByteStep != 0) {
    return TileViolation{Code::kTileShape,
                         "tile.k: expected a multiple of 32 with 8-bit " +
                             std::string(per_thread ? "keys" : "values") + ", got " +
                             std::to_string(shape.tile_k),
                         per_thread ? "groups of a thread are taken from 32 keys at a time"
                                    : "an mma of 8-bit values adds up 32 keys",
                         "/tile/k"};
  }
  return std::nullopt;
}

/// Integers of a tile are made by one block of `prepare`.
std::optional<TileViolation> check_prepared(const TileShape& shape) {
  if (shape.qk_bits != 8) return std::nullopt;
  for (const auto& [side, tile] : {std::pair{"q", shape.tile_q}, std::pair{"k", shape.tile_k}}) {
    if (kPreparedTokens % tile == 0) continue;
    return TileViolation{Code::kTileShape,
                         "tile." + std::string(side) +
                             ": expected a divisor of 256 with 8-bit queries and keys, got " +
                             std::to_string(tile),
                         "integers of a tile are made by one block, which takes up to 256 tokens",
                         side[0] == 'q' ? "/tile/q" : "/tile/k"};
  }
  return std::nullopt;
}

std::optional<TileViolation> check_shape(const TileShape& shape, const Choice<int>& warps) {
  if (shape.tile_q % kWarpRows != 0 || shape.tile_k % kWarpRows != 0) {
    return TileViolation{Code::kTileShape,
                         "tile " + std::to_string(shape.tile_q) + "x" +
                             std::to_string(shape.tile_k) + ": sizes must be multiples of 16",
                         "one mma multiplies 16 query rows with keys in steps of 16", "/tile"};
  }
  if (!warps.admits(shape.row_warps())) {
    return TileViolation{Code::kTileShape,
                         "tile.warps: expected " + std::to_string(shape.row_warps()) +
                             " for tile.q = " + std::to_string(shape.tile_q) + ", got " +
                             std::to_string(warps.values.front()),
                         "a warp owns 16 query rows: tile.q = 16 * tile.warps", "/tile/warps"};
  }
  if (shape.stages < kLeastStages) {
    return TileViolation{Code::kTileShape,
                         "tile.stages: expected 2 or more, got " + std::to_string(shape.stages),
                         "a K tile is loaded while another is in use", "/tile/stages"};
  }
  if (rows_per_pass(shape) % 8 != 0) {
    return TileViolation{Code::kTileShape,
                         warps.is_auto()
                             ? tile_text("tile.q", shape.tile_q) + " has an odd number of warps"
                             : tile_text("tile.warps", shape.row_warps()) + " is odd",
                         "the threads of a block load rows in eights, which takes two warps at "
                         "head_dim " +
                             std::to_string(shape.head_dim),
                         "/tile/q"};
  }
  return std::nullopt;
}

/// Divisors that are whole rows of mma and tiles of attend, the largest first; the number itself if
/// there are none.
std::vector<int> tiles_within(int keep) {
  constexpr int kLargestTile = 256;
  std::vector<int> tiles;
  for (int tile = std::min(keep / kWarpRows * kWarpRows, kLargestTile); tile > 0;
       tile -= kWarpRows) {
    if (keep % tile == 0) tiles.push_back(tile);
  }
  if (tiles.empty()) tiles.push_back(keep);
  return tiles;
}

/// The first parameter with this dimension that an expression reads; "" if there is none.
std::string parameter_along(const Expr& expr, ParamAxis axis) {
  for (std::size_t p = 0; p < expr.parameters.size(); ++p) {
    const ParamSymbol& symbol = expr.parameters[p];
    if (std::ranges::count(symbol.shape, axis, &ParamDim::axis) > 0 &&
        uses_parameter(expr, static_cast<int>(p)))
      return symbol.name;
  }
  return "";
}

}  // namespace

TileRequest tile_request(const Program& program, const TileSpec& spec, const Target& target) {
  const Attend& attend = attend_of(program);
  TileRequest request{.spec = spec, .target = target, .group = attend.qk_group};
  request.gathers = attend.columns >= 0;
  request.has_wide_rows = widest_row(program) > kWarpColumns;
  for (const auto& [select, estimate] : predict_steps(program)) {
    request.keep_q = select->tile_q, request.keep_k = select->tile_k;
    std::vector<const Expr*> of_tiles = {&select->keep};
    if (estimate != nullptr) of_tiles.insert(of_tiles.end(), {&estimate->exclude, &estimate->from});
    for (const Expr* of_tile : of_tiles) {
      const Expr& expr = *of_tile;
      if (request.per_q_tile.empty())
        request.per_q_tile = parameter_along(expr, ParamAxis::kQTiles);
      if (request.per_k_tile.empty())
        request.per_k_tile = parameter_along(expr, ParamAxis::kKTiles);
    }
  }
  return request;
}

TileCandidates tile_candidates(const TileRequest& request) {
  const TileSpec& tile = request.spec;
  const std::vector<int>& keys = request.has_wide_rows ? kWideTileK : kDefaultTileK;
  TileCandidates candidates{preferred(tile.q, request.has_wide_rows ? kWideTileQ : kDefaultTileQ),
                            preferred(tile.k, request.gathers ? kGatheredTileK : keys),
                            preferred(tile.stages, kDefaultStages)};
  if (tile.q.is_auto() && !tile.warps.is_auto()) {
    candidates.tile_q.clear();
    for (const int warps : tile.warps.values) candidates.tile_q.push_back(warps * kWarpRows);
  } else if (tile.q.is_auto() && request.keep_q != 0) {
    candidates.tile_q = tiles_within(request.keep_q);
  }
  if (tile.k.is_auto() && request.keep_k != 0 && !request.gathers)
    candidates.tile_k = tiles_within(request.keep_k);
  return candidates;
}

std::optional<TileShape> tuned_shape(const TunedTiles* tuned, const TileSpec& spec,
                                     TileShape usual) {
  if (tuned == nullptr) return std::nullopt;
  const auto allows = [](const Choice<int>& choice, int value) {
    return value > 0 && choice.admits(value);
  };
  TileShape shape = usual;
  if (tuned->stages > 0) shape.stages = tuned->stages;
  shape.tile_q = tuned->tile_q, shape.tile_k = tuned->tile_k;
  if (!allows(spec.q, shape.tile_q) || !allows(spec.k, shape.tile_k)) return std::nullopt;
  if (tuned->stages > 0 && !allows(spec.stages, shape.stages)) return std::nullopt;
  return shape;
}

std::optional<TileViolation> find_kept_violation(const TileShape& shape,
                                                 const TileRequest& request) {
  if (request.keep_q == 0) return std::nullopt;
  const bool per_q = !request.per_q_tile.empty(), per_k = !request.per_k_tile.empty();
  if (auto violation = check_kept("q", shape.tile_q, request.keep_q, request.gathers || per_q,
                                  per_q ? per_tile_reason(request.per_q_tile)
                                        : "a work tile gathers the columns of one decision",
                                  "/tile/q")) {
    return violation;
  }
  if (!request.gathers) {
    return check_kept("k", shape.tile_k, request.keep_k, per_k, per_tile_reason(request.per_k_tile),
                      "/tile/k");
  }
  if (shape.tile_k % request.keep_k == 0) return std::nullopt;
  return TileViolation{Code::kTileShape,
                       tile_text("tile.k", shape.tile_k) + " is not a whole number of columns of " +
                           std::to_string(request.keep_k) + " keys",
                       "a gathered tile is filled with whole columns", "/tile/k"};
}

std::optional<TileViolation> find_violation(const TileShape& shape, const TileRequest& request) {
  const Target& target = request.target;
  const bool limited = target.kind == TargetKind::kCuda;
  if (auto violation = limited ? check_shape(shape, request.spec.warps) : std::nullopt)
    return violation;
  if (auto violation = find_kept_violation(shape, request)) return violation;
  if (auto violation = check_integers(shape, request)) return violation;
  if (!limited) return std::nullopt;
  if (auto violation = check_prepared(shape)) return violation;
  if (smem_bytes(shape) > target.smem_bytes_per_block) {
    return TileViolation{
        Code::kSmemLimit,
        "tile " + shape_text(shape) + " needs " + std::to_string(smem_bytes(shape)) +
            " bytes of shared memory, " + target.name + " has " +
            std::to_string(target.smem_bytes_per_block) + " for a block",
        smem_formula(shape) + ": the query tile, and K and V tiles for each stage"};
  }
  if (registers_estimate(shape) > registers_limit(shape, target)) {
    return TileViolation{
        Code::kRegisterLimit,
        "tile " + shape_text(shape) + " needs about " + std::to_string(registers_estimate(shape)) +
            " registers a thread, " + target.name + " has " +
            std::to_string(registers_limit(shape, target)) + " for " +
            std::to_string(shape.threads()) + " threads",
        "a warp keeps 16 rows of O and, up to head_dim 128, of Q (head_dim wide) and of S and P "
        "(tile.k wide) in registers"};
  }
  return std::nullopt;
}

std::string spill_reason(const TileShape& shape, const Target& target) {
  const bool converts = shape.v_bits == 8 && target.converts_e4m3_mma;
  if (!converts || shape.head_dim < kWideHeadDim || shape.tile_k <= kKeysOfByteStep) return "";
  return target.name + " converts e4m3 values for its mma, which spills registers with tile.k = " +
         std::to_string(shape.tile_k) + " at head_dim " + std::to_string(shape.head_dim);
}

const char* written_place(std::string_view side, const TileRequest& request) {
  const TileSpec& tile = request.spec;
  if (side == "k") return tile.k.is_auto() && request.keep_k != 0 ? "/predictor/tile/k" : "/tile/k";
  if (!tile.q.is_auto()) return "/tile/q";
  if (!tile.warps.is_auto()) return "/tile/warps";
  return request.keep_q != 0 ? "/predictor/tile/q" : "/tile/q";
}

namespace {

TileRequest with_spec(const TileRequest& request, const TileSpec& spec) {
  return {.spec = spec,
          .target = request.target,
          .keep_q = request.keep_q,
          .keep_k = request.keep_k,
          .gathers = request.gathers,
          .has_wide_rows = request.has_wide_rows,
          .per_q_tile = request.per_q_tile,
          .per_k_tile = request.per_k_tile,
          .group = request.group};
}

}  // namespace

std::vector<LegalValues> nearest_legal(const std::vector<TileShape>& shapes,
                                       const TileRequest& request, const IsLegal& is_legal) {
  const TileShape& shape = shapes.front();
  struct Field {
    std::string_view pointer;
    int TileShape::*member;
    int step, maximum;
  };
  const Field fields[] = {{written_place("q", request), &TileShape::tile_q, 16, 256},
                          {written_place("k", request), &TileShape::tile_k, 16, 256},
                          {"/tile/stages", &TileShape::stages, 1, 4}};
  std::vector<LegalValues> legal;
  for (const auto& [pointer, member, step, maximum] : fields) {
    std::optional<int> below, above;
    for (int value = step; value <= maximum; value += step) {
      TileSpec spec = request.spec;
      if (pointer == "/tile/warps") spec.warps.values = {value / kWarpRows};
      TileRequest wanted = with_spec(request, spec);
      if (pointer == "/predictor/tile/q") wanted.keep_q = value;
      if (pointer == "/predictor/tile/k") wanted.keep_k = value;
      const auto is_legal_with = [&](TileShape other) {
        other.*member = value;
        return is_legal(other, wanted);
      };
      if (value == shape.*member || std::ranges::none_of(shapes, is_legal_with)) continue;
      if (value < shape.*member) below = value;
      if (value > shape.*member && !above) above = value;
    }
    const int unit = pointer == "/tile/warps" ? kWarpRows : 1;
    std::string name(pointer.substr(1)), text;
    std::ranges::replace(name, '/', '.');
    for (const std::optional<int>& value : {below, above})
      if (value) text += (text.empty() ? "" : " or ") + std::to_string(*value / unit);
    if (!text.empty()) legal.push_back({pointer, name + " = " + text});
  }
  return legal;
}

}  // namespace lacuna
