// Stand-in for templates/arch/copy/stmatrix.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline void stmatrix_x4(u32 address, const u32 (&matrices)[4]) {
  ::emulation::store_matrices(address, matrices);
}

}  // namespace lacuna
