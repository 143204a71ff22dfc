// How many tiles a block of the wgmma family holds in shared memory: of keys, values and queries,
// and of codes of e4m3.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/passes/target/tile_choice.hpp"
#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {

/// The numbers of stages to try, the preferred one first, and why that is preferred. No reason: the
/// spec has them.
struct StagePreference {
  std::vector<int> stages;
  std::string reason;
  /// More than the least are not worth queries that come late.
  bool wants_two_query_tiles = false;

  bool accepts(const WgmmaShape& shape) const;
};
StagePreference stage_preference(const Program& program, const TileRequest& request);

/// The reason why a block has `stages` slots for keys. fits(n): could a block have n slots, with
/// the same tiles?
std::string stages_reason(const StagePreference& preference, int stages,
                          const std::function<bool(int stages)>& fits);

/// The shape with its places of values as its consumer needs them, before with_places adds any.
WgmmaShape with_value_places(WgmmaShape shape, const Attend& attend);

/// The shape with its places of queries, and of more values or codes, as they fit the target.
WgmmaShape with_places(WgmmaShape shape, const Program& program, const Target& target);

}  // namespace lacuna
