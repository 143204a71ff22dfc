// Stand-in for templates/arch/count.cuh.
#pragma once

namespace lacuna {

inline void count_if_above(int& count, int x, int bound) { count += x > bound; }

}  // namespace lacuna
