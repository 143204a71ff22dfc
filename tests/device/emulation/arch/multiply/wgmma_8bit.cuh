// Stand-in for templates/arch/multiply/wgmma_8bit.cuh.
#pragma once

#include "arch/multiply/wgmma.cuh"

namespace lacuna {

template <int kBlocks>
inline void fence_accumulator(int (&)[kBlocks][4]) {}

template <int kBlocks>
inline void wgmma_from_smem_s8(int (&d)[kBlocks][4], unsigned long long a, unsigned long long b,
                               bool adds) {
  ::emulation::start_product(
      {::emulation::ElementKind::kS8, kBlocks, d, nullptr, a, b, false, adds});
}
template <int kBlocks>
inline void wgmma_from_registers_e4m3(float (&d)[kBlocks][4], const u32 (&a)[4],
                                      unsigned long long b, bool adds) {
  ::emulation::start_product({::emulation::ElementKind::kE4m3, kBlocks, d, a, 0, b, false, adds});
}

}  // namespace lacuna
