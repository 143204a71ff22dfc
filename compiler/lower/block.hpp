// What blocks of most kernels have in common.
#pragma once

#include "compiler/lower/kernel.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {

inline constexpr int kBlockThreads = 256;  ///< of most kernels; only attend's and wgmma's have more
inline constexpr int kBlockWarps = kBlockThreads / kWarpThreads;
/// The most blocks of a kernel whose blocks go from one piece of work to the next: each has memory
/// of its own in the workspace.
inline constexpr int kMostStridingBlocks = 512;

inline Chosen<int> block_threads() {
  return {kBlockThreads, Origin::kDefault, "8 warps hide each other's loads"};
}
inline Chosen<int> no_smem() {
  return {0, Origin::kDerived, "nothing is exchanged within a block"};
}

}  // namespace lacuna
