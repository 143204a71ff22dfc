#include "compiler/passes/tile_choice.hpp"

#include <algorithm>
#include <cstdlib>

namespace lacuna {
namespace {

// Preference: 128 queries share each K/V tile among 8 warps; 64 keys keep S, P and O of a warp in
// registers; two stages overlap the loads of one tile with the arithmetic of another. Smaller ones
// follow for large heads on targets with little shared memory.
const std::vector kDefaultTileQ{128, 64, 32};
const std::vector kDefaultTileK{64, 32};
const std::vector kDefaultStages{2};
constexpr int kLeastStages = 2;

const std::vector<int>& preferred(const Choice<int>& choice, const std::vector<int>& defaults) {
  return choice.is_auto() ? defaults : choice.values;
}

std::string shape_text(const TileShape& shape) {
  return std::to_string(shape.tile_q) + "x" + std::to_string(shape.tile_k) + " with " +
         std::to_string(shape.stages) + " stages at head_dim " + std::to_string(shape.head_dim);
}

/// Rows that the block's threads load together; 8 neighbours share a row of whole 128-byte lines.
int rows_per_pass(const TileShape& shape) {
  const int chunks = shape.head_dim / 8;  // of 16 bytes
  const int lanes = std::min(8, chunks & -chunks);
  return shape.threads() / lanes;
}

std::optional<TileViolation> check_shape(const TileShape& shape, const Choice<int>& warps) {
  if (shape.tile_q % kWarpRows != 0 || shape.tile_k % kWarpRows != 0) {
    return TileViolation{Code::kTileShape,
                         "tile " + std::to_string(shape.tile_q) + "x" +
                             std::to_string(shape.tile_k) + ": sizes must be multiples of 16",
                         "one mma multiplies 16 query rows with keys in steps of 16", "/tile"};
  }
  if (!warps.is_auto() && std::ranges::count(warps.values, shape.warps()) == 0) {
    return TileViolation{Code::kTileShape,
                         "tile.warps: expected " + std::to_string(shape.warps()) +
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
                         "tile.q = " + std::to_string(shape.tile_q) + " has an odd number of warps",
                         "the threads of a block load rows in eights, which takes two warps at "
                         "head_dim " +
                             std::to_string(shape.head_dim),
                         "/tile/q"};
  }
  return std::nullopt;
}

}  // namespace

TileCandidates tile_candidates(const TileSpec& tile) {
  TileCandidates candidates{preferred(tile.q, kDefaultTileQ), preferred(tile.k, kDefaultTileK),
                            preferred(tile.stages, kDefaultStages)};
  if (tile.q.is_auto() && !tile.warps.is_auto()) {
    candidates.tile_q.clear();
    for (const int warps : tile.warps.values) candidates.tile_q.push_back(warps * kWarpRows);
  }
  return candidates;
}

std::optional<TileViolation> find_violation(const TileShape& shape, const Choice<int>& warps,
                                            const Target& target) {
  if (auto violation = check_shape(shape, warps)) return violation;
  if (smem_bytes(shape) > target.smem_bytes_per_block) {
    return TileViolation{Code::kSmemLimit,
                         "tile " + shape_text(shape) + " needs " +
                             std::to_string(smem_bytes(shape)) + " bytes of shared memory, " +
                             target.name + " has " + std::to_string(target.smem_bytes_per_block) +
                             " for a block",
                         smem_formula(shape) +
                             " bytes: the query tile, and K and V tiles for each stage, of 2-byte "
                             "elements"};
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

std::vector<std::string> nearest_legal(const TileShape& shape, const Choice<int>& warps,
                                       const Target& target) {
  struct Field {
    const char* name;
    int TileShape::*member;
    int step, maximum;
  };
  constexpr Field kFields[] = {{"tile.q", &TileShape::tile_q, 16, 256},
                               {"tile.k", &TileShape::tile_k, 16, 256},
                               {"tile.stages", &TileShape::stages, 1, 4}};
  std::vector<std::string> legal;
  for (const Field& field : kFields) {
    std::optional<int> nearest;
    for (int value = field.step; value <= field.maximum; value += field.step) {
      TileShape other = shape;
      other.*field.member = value;
      if (find_violation(other, warps, target)) continue;
      const int distance = std::abs(value - shape.*field.member);
      if (!nearest || distance < std::abs(*nearest - shape.*field.member)) nearest = value;
    }
    if (nearest) legal.push_back(std::string(field.name) + " = " + std::to_string(*nearest));
  }
  return legal;
}

}  // namespace lacuna
