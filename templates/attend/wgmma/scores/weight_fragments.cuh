// Weights of a step as operands of the product with V: which groups take part, and the fragments.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "base/constant.cuh"

namespace lacuna {

/// issue(groups that count), a Constant with a bit for each. Each choice is a branch of its own,
/// with a commit in it: waits count commits, and a product that goes on behind a branch would take
/// one more.
template <int kChosen = 0, int kGroup = 0, int kGroups, class Issue>
__device__ __forceinline__ void with_chosen_groups(const bool (&counts)[kGroups],
                                                   const Issue& issue) {
  if constexpr (kGroup < kGroups) {
    if (uniform_over_warp(counts[kGroup]) != 0) {
      with_chosen_groups<kChosen | 1 << kGroup, kGroup + 1>(counts, issue);
    } else {
      with_chosen_groups<kChosen, kGroup + 1>(counts, issue);
    }
  } else {
    issue(Constant<kChosen>{});
  }
}

/// The weights of 16 keys, two accumulator blocks, as the 16-bit operand from registers.
template <class Element>
__device__ __forceinline__ u32 weight_pair(const float (*blocks)[4], int i) {
  const float(&block)[4] = blocks[i / 2];
  return pack<Element>(block[i % 2 * 2], block[i % 2 * 2 + 1]);
}

}  // namespace lacuna
