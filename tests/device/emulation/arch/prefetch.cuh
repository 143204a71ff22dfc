// Stand-in for templates/arch/prefetch.cuh.
#pragma once

namespace lacuna {

inline void prefetch_to_l1(const void*) {}

}  // namespace lacuna
