// What a plan gives up, step by step, if its kernels spill registers. Only the assembler can tell:
// runtime/engine/build/build.cpp compiles, and asks for the next plan where registers spill.
#pragma once

#include <span>
#include <string_view>

namespace lacuna {

/// Bounds that a plan keeps, besides those of the target. What a spec writes, and tiles that a
/// caller sees, are kept all the same: such a plan is then that of another rung, or none.
struct Relief {
  std::string_view reason;    ///< what it saves, for the plan
  int most_warpgroups = 3;    ///< wgmma: of a block; three have 160 registers, two have 240
  int most_step_keys = 128;   ///< wgmma: scores of a row in registers at a time
  int most_tile_k = 1024;     ///< mma: the same as most_step_keys
  bool keeps_queries = true;  ///< wgmma: in registers, where there is room
  bool packs_few = true;      ///< wgmma: a second attend of sequences of few queries
  bool asks_for_mma = false;  ///< the family that shares its registers with no other warp
};

/// From the plan without any to the one that needs the fewest registers.
std::span<const Relief> reliefs();

}  // namespace lacuna
