// Stand-in for templates/arch/multiply/wgmma.cuh.
#pragma once

#include "arch/format.cuh"
#include "arch/warp.cuh"

namespace lacuna {

inline void wgmma_begin() {}
inline void wgmma_commit() { ::emulation::commit_work(::emulation::Engine::kProducts); }
inline void wgmma_wait(int pending) {
  ::emulation::wait_for_work(::emulation::Engine::kProducts, pending);
}
template <int kPending>
inline void wgmma_wait() {
  wgmma_wait(kPending);
}
template <int kBlocks>
inline void fence_accumulator(float (&)[kBlocks][4]) {}

enum class Contiguous { kDepth = 0, kColumns = 1 };

template <class Element>
inline constexpr ::emulation::ElementKind kElementKind =
    kFormat<Element> == ::emulation::Format::kF16 ? ::emulation::ElementKind::kF16
                                                  : ::emulation::ElementKind::kBF16;

template <class Element, int kBlocks>
inline void wgmma_from_smem(float (&d)[kBlocks][4], unsigned long long a, unsigned long long b,
                            bool adds) {
  ::emulation::start_product({kElementKind<Element>, kBlocks, d, nullptr, a, b, false, adds});
}
template <class Element, Contiguous kB, int kBlocks>
inline void wgmma_from_registers(float (&d)[kBlocks][4], const u32 (&a)[4], unsigned long long b,
                                 bool adds) {
  ::emulation::start_product(
      {kElementKind<Element>, kBlocks, d, a, 0, b, kB == Contiguous::kColumns, adds});
}
template <class Element, Contiguous kB, int kBlocks>
inline void wgmma_four_from_registers(float (&d)[kBlocks][4], const u32 (*a)[4],
                                      const unsigned long long (&b)[4], bool adds) {
  for (int n = 0; n < 4; ++n) wgmma_from_registers<Element, kB>(d, a[n], b[n], adds || n > 0);
}

}  // namespace lacuna
