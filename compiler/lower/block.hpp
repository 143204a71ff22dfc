// What blocks of most kernels have in common.
#pragma once

#include "compiler/lower/kernel.hpp"
#include "compiler/target/limits.hpp"

namespace lacuna {

inline constexpr int kBlockThreads = 256;  ///< of most kernels; only attend's and wgmma's have more
inline constexpr int kBlockWarps = kBlockThreads / kWarpThreads;

inline Chosen<int> block_threads() {
  return {kBlockThreads, Origin::kDefault, "8 warps hide each other's loads"};
}
inline Chosen<int> no_smem() {
  return {0, Origin::kDerived, "nothing is exchanged within a block"};
}

}  // namespace lacuna
