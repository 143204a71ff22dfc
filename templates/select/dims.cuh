// The elements of q and k that an estimate compares: bit n of Config::kDims stands for elements 16
// n to 16 n + 15; a Config that does not say takes all.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

template <class Config, class = const int>
inline constexpr u32 kDimsOf = ~0u;
template <class Config>
inline constexpr u32 kDimsOf<Config, decltype(Config::kDims)> = static_cast<u32>(Config::kDims);

template <class Config>
__device__ __forceinline__ constexpr bool takes_element(int element) {
  return kDimsOf<Config> == ~0u || (kDimsOf<Config> >> element / 16 & 1u) != 0;
}

}  // namespace lacuna
