// Stand-in for templates/arch/copy/ldmatrix.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline void ldmatrix_x4(u32 (&matrices)[4], u32 address) {
  ::emulation::load_matrices(matrices, address, false);
}
inline void ldmatrix_x4_transposed(u32 (&matrices)[4], u32 address) {
  ::emulation::load_matrices(matrices, address, true);
}

}  // namespace lacuna
