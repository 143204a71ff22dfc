// Stand-in for templates/arch/warpgroup.cuh.
#pragma once

#include "arch/warp.cuh"

namespace lacuna {

template <int kRegisters>
inline void grow_registers() {}
template <int kRegisters>
inline void shrink_registers() {}

struct NamedBarrier {
  int id;
  int threads;
  void sync() const { sync_all(true); }
  void arrive() const { ::emulation::arrive_some(id, threads); }
  bool sync_all(bool condition) const { return ::emulation::meet_some(id, threads, condition); }
};

inline bool elect_one() { return ::emulation::exchange(lane_index(), 0) == lane_index(); }

}  // namespace lacuna
