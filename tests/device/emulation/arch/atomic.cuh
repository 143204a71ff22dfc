// Stand-in for templates/arch/atomic.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline u32 take_number(u32* counter) { return (*counter)++; }
inline u32 take_number_in_order(u32* counter) { return (*counter)++; }
/// Other blocks that run at the same time give theirs back.
inline bool take_if_free(u32* holder) {
  if (*holder != 0) ::emulation::yield();
  if (*holder != 0) return false;
  *holder = 1;
  return true;
}
inline void give_back(u32* holder) { *holder = 0; }
inline void await_number_in_order(const u32* counter, u32 number) {
  while (*counter < number) ::emulation::yield();
}

}  // namespace lacuna
