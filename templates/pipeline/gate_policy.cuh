// How the warps of a wgmma kernel agree about a tile of a gate. The plan chooses one
// (compiler/target/choose_variant.cpp), and the generated file names it as Config::GatePolicy; the
// files of attend/wgmma/ that follow it:
//
//   GateByStatistics   each warp says what it found, and all in scope wait: gate_votes.cuh
//   GateByTileVotes    each says whether a tile counts, and waits only if its own rows leave that
//   open GateByStepVotes    the same of all tiles of a step; both: step_votes.cuh GateAhead a
//   producer decides under the next product: tile_gate_producer.cuh
#pragma once

#include "base/ints.cuh"
#include "pipeline/gate.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

struct GateByStatistics {
  static constexpr bool kExists = true;
  static constexpr bool kLooksAhead = false;
  static constexpr bool kHasTileVotes = false, kHasStepVotes = false;
  /// What a warp says at a time, of kTiles tiles.
  template <int kTiles>
  using Vote = GateStatistics;
  /// Places of votes, used one after the other; or one for each slot of K.
  static constexpr int vote_slots(int) { return 2; }
};

/// Votes have places, and nobody is asked.
struct NoGate : GateByStatistics {
  static constexpr bool kExists = false;
};

/// Some warps are ahead of others, by the tiles of kStages steps at most: less than there are
/// places.
struct GateByTileVotes {
  static constexpr bool kExists = true;
  static constexpr bool kLooksAhead = false;
  static constexpr bool kHasTileVotes = true, kHasStepVotes = false;
  template <int kTiles>
  using Vote = u32;
  static constexpr int vote_slots(int) { return kTileVoteSlots; }
};

struct GateByStepVotes : GateByTileVotes {
  static constexpr bool kHasTileVotes = false, kHasStepVotes = true;
};

struct GateAhead {
  static constexpr bool kExists = true;
  static constexpr bool kLooksAhead = true;
  static constexpr bool kHasTileVotes = false, kHasStepVotes = false;
  template <int kTiles>
  using Vote = StepMaxima<kTiles>;
  static constexpr int vote_slots(int stages) { return stages; }
};

}  // namespace lacuna
