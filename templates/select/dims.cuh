// The elements of q and k that an estimate compares.
#pragma once

#include "base/ints.cuh"
#include "base/optional_field.cuh"

namespace lacuna {

/// Bit n stands for elements 16 n to 16 n + 15.
LACUNA_OPTIONAL_FIELD(u32, compared_dims, kDims, ~0u)

template <class Config>
__device__ __forceinline__ constexpr bool takes_element(int element) {
  return compared_dims<Config>() == ~0u || (compared_dims<Config>() >> element / 16 & 1u) != 0;
}

}  // namespace lacuna
