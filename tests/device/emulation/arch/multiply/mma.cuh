// Stand-in for templates/arch/multiply/mma.cuh.
#pragma once

#include "arch/format.cuh"

namespace lacuna {

template <class Element>
inline void mma_m16n8k16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  ::emulation::multiply_matrices(kFormat<Element>, c, a, b0, b1);
}

inline void mma_m16n8k32_s8(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  ::emulation::multiply_s8(c, a, b0, b1);
}
inline void mma_m16n8k32_e4m3(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  ::emulation::multiply_e4m3(c, a, b0, b1);
}

}  // namespace lacuna
