// The begin of a kernel that overlaps with the end of the one before it (arch/launch.cuh). The
// entry begins most kernels, before all else; a kernel that has something to do meanwhile begins
// itself. It may then read what the caller gave, and what kernels before the last one have left,
// and write nothing.
#pragma once

#include "arch/launch.cuh"
#include "base/optional_field.cuh"

namespace lacuna {

/// Does the kernel call begin_kernel, in place of its entry?
LACUNA_OPTIONAL_FIELD(bool, begins_itself, kBeginsItself, false)

/// By all threads of a block, unless it has nothing to do.
template <class Config>
__device__ __forceinline__ void begin_kernel() {
  if constexpr (begins_itself<Config>()) {
    await_kernel_before();
    admit_kernel_after();
  }
}

}  // namespace lacuna
