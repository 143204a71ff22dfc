// Barriers in shared memory that count arrivals of threads and bytes of copies (sm_90). A phase is
// over when all expected arrivals and bytes have come. A waiter names only the parity of the phase
// it waits for, so it must not be late by two phases or more.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

struct Mbarrier {
  u32 address;  ///< in shared memory, 8 bytes

  /// By one thread, before any other use; fence_mbarrier_init and a block barrier follow.
  __device__ __forceinline__ void init(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals)
                 : "memory");
  }

  __device__ __forceinline__ void arrive() const {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
  }

  /// Arrives, and adds bytes that copies have yet to bring; what they write out of bounds counts.
  __device__ __forceinline__ void arrive_expecting(int bytes) const {
    asm volatile(
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(address),
        "r"(bytes)
        : "memory");
  }

  /// Arrives once all copies that this thread has issued (arch/copy/cp_async.cuh) have been
  /// written.
  __device__ __forceinline__ void arrive_after_copies() const {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address) : "memory");
  }

  /// Returns once the phase of this parity is over; on a fresh barrier parity 1 counts as over.
  __device__ __forceinline__ void wait(u32 parity) const {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(address),
        "r"(parity)
        : "memory");
  }
};

/// Initialised barriers become visible to the copy engine.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace lacuna
