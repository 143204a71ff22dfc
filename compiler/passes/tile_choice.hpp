// The search behind choose_tiles: which shapes are tried, in which order, and what is wrong with
// one that cannot be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/passes/pass.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {

/// The values tried for each field, in order of preference: the user's, else defaults.
struct TileCandidates {
  std::vector<int> tile_q, tile_k, stages;
};
TileCandidates tile_candidates(const TileSpec& tile);

/// Why a shape cannot be; `message` has the numbers, `note` the rule.
struct TileViolation {
  Code code{};
  std::string message, note;
  const char* pointer = nullptr;  ///< the field at fault; null: the tile as a whole is too large
};
std::optional<TileViolation> find_violation(const TileShape& shape, const Choice<int>& warps,
                                            const Target& target);

/// "tile.k = 64": for each field the legal value nearest to the shape's, the others kept.
std::vector<std::string> nearest_legal(const TileShape& shape, const Choice<int>& warps,
                                       const Target& target);

}  // namespace lacuna
