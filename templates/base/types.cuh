// Element types of q, k, v and o. The kernels need only their size: arch/pack.cuh makes them,
// arch/multiply/mma.cuh multiplies them.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

struct bf16 {
  unsigned short bits;
};
struct f16 {
  unsigned short bits;
};

}  // namespace lacuna
