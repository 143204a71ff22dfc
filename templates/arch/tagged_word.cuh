// A word in shared memory that one thread writes and others wait for: one read, where a barrier and
// a word behind it would be two. Nothing but the word is passed on; what was written before it is
// not.
#pragma once

#include "base/types.cuh"

namespace lacuna {

/// 31 bits and, on top, the parity of the round they were written in. A writer is ahead of its
/// readers by less than two rounds.
struct TaggedWord {
  u32 address;  ///< in shared memory

  /// By one thread, before any other use; a block barrier follows. The first round is even.
  __device__ __forceinline__ void init() const { write(0, 1); }

  __device__ __forceinline__ void write(u32 value, u32 parity) const {
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(value | parity << 31)
                 : "memory");
  }

  /// Returns what was written in the round of this parity, once it was.
  __device__ __forceinline__ u32 await(u32 parity) const {
    u32 word;
    asm volatile(
        "{\n"
        ".reg .pred other;\n"
        ".reg .b32 parity;\n"
        "again:\n"
        "ld.volatile.shared.u32 %0, [%1];\n"
        "shr.u32 parity, %0, 31;\n"
        "setp.ne.u32 other, parity, %2;\n"
        "@other bra again;\n"
        "}\n"
        : "=r"(word)
        : "r"(address), "r"(parity)
        : "memory");
    return word & 0x7fffffffu;
  }
};

}  // namespace lacuna
