// Stand-in for templates/arch/atomic.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline u32 take_number(u32* counter) { return (*counter)++; }
inline u32 take_number_in_order(u32* counter) { return (*counter)++; }
inline void await_number_in_order(const u32* counter, u32 number) {
  while (*counter < number) ::emulation::yield();
}

}  // namespace lacuna
