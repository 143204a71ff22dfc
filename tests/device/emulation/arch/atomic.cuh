// Stand-in for templates/arch/atomic.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline u32 take_number(u32* counter) { return (*counter)++; }
inline u32 take_number_in_order(u32* counter) { return (*counter)++; }

}  // namespace lacuna
