// Stand-in for templates/arch/registers.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline int block_index() { return ::emulation::block_index(); }
inline int thread_index() { return ::emulation::thread_index(); }
inline u32 shared_address(const void* pointer) { return ::emulation::shared_address(pointer); }

}  // namespace lacuna
