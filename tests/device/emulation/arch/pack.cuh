// Stand-in for templates/arch/pack.cuh.
#pragma once

#include "arch/format.cuh"

namespace lacuna {

template <class Element>
inline u32 pack(float low, float high) {
  const u32 low_bits = ::emulation::round_to(kFormat<Element>, low);
  const u32 high_bits = ::emulation::round_to(kFormat<Element>, high);
  return low_bits | high_bits << 16;
}

}  // namespace lacuna
