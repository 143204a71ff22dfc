// Stand-in for templates/arch/copy/cp_async.cuh: copies land when the schedule says.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline void cp_async_16(u32 target, const void* source, bool valid) {
  ::emulation::start_copy(target, valid ? source : nullptr, 16);
}
inline void cp_async_4(u32 target, const void* source) {
  ::emulation::start_copy(target, source, 4);
}
inline void cp_async_commit() { ::emulation::commit_work(::emulation::Engine::kCopies); }
template <int kPending>
inline void cp_async_wait() {
  ::emulation::wait_for_work(::emulation::Engine::kCopies, kPending);
}

}  // namespace lacuna
