// How the warps of a wgmma kernel agree about a tile of a gate. The plan chooses one
// (compiler/target/choose_variant.cpp), and the generated file names it as Config::GatePolicy.
//
//   GateByStatistics  Each warp says what it found, and all in scope wait.
//                     attend/wgmma/gates/gate_votes.cuh
//   GateByTileVotes   Each warp says whether a tile counts, and waits for the others only if
//                     its own rows do not tell. attend/wgmma/gates/step_votes.cuh
//   GateByStepVotes   The same, for all tiles of a step at once.
//   GateAhead         A warp of the producer decides while the next product is under way.
//                     attend/wgmma/producers/tile_gate_producer.cuh
#pragma once

#include "base/ints.cuh"
#include "pipeline/gate.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

struct GateByStatistics {
  static constexpr bool kExists = true;
  static constexpr bool kLooksAhead = false;
  static constexpr bool kHasTileVotes = false, kHasStepVotes = false;
  /// What a warp publishes at a time, of kTiles tiles.
  template <int kTiles>
  using Vote = GateStatistics;
  /// Places of votes, used one after the other; or one for each slot of K.
  static constexpr int vote_slots(int) { return 2; }
};

/// Votes still have places in shared memory, which are not used.
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
