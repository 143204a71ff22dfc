// The products of arch/multiply/wgmma.cuh on 8-bit operands, 32 deep, which are contiguous in
// depth: int8 into s32, and e4m3 weights in registers into f32.
//
// Lanes hold accumulators as there. As fragment of A a lane gives of row g the bytes 4q .. 4q + 3,
// of row g + 8 the same, then both 16 bytes on.
#pragma once

#include "arch/multiply/wgmma.cuh"

namespace lacuna {

template <int kBlocks>
__device__ __forceinline__ void fence_accumulator(int (&accumulator)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(accumulator[n][i])::"memory");
  }
}

/// d = A B, or d += A B, of int8, 8 * kBlocks columns; A from shared memory.
template <int kBlocks>
__device__ void wgmma_from_smem_s8(int (&d)[kBlocks][4], unsigned long long a, unsigned long long b,
                                   bool adds);
/// d = A B, or d += A B, of e4m3, with a fragment of A in registers. The sum has about 14 bits.
template <int kBlocks>
__device__ void wgmma_from_registers_e4m3(float (&d)[kBlocks][4], const u32 (&a)[4],
                                          unsigned long long b, bool adds);

#define LACUNA_INTEGERS(d, n) "+r"(d[n][0]), "+r"(d[n][1]), "+r"(d[n][2]), "+r"(d[n][3])
#define LACUNA_INTEGERS_4(d, n)                                                \
  LACUNA_INTEGERS(d, n), LACUNA_INTEGERS(d, n + 1), LACUNA_INTEGERS(d, n + 2), \
      LACUNA_INTEGERS(d, n + 3)
#define LACUNA_INTEGERS_32(d) LACUNA_INTEGERS_4(d, 0), LACUNA_INTEGERS_4(d, 4)
#define LACUNA_INTEGERS_64(d) \
  LACUNA_INTEGERS_32(d), LACUNA_INTEGERS_4(d, 8), LACUNA_INTEGERS_4(d, 12)

// R: registers of the accumulator; the operands after them are %R, ...
#define LACUNA_WGMMA_8BIT(N, R, R1, R2, R3, R4, R5)                                              \
  template <>                                                                                    \
  __device__ __forceinline__ void wgmma_from_smem_s8<N / 8>(                                     \
      int(&d)[N / 8][4], unsigned long long a, unsigned long long b, bool adds) {                \
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #R2                                  \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k32.s32.s8.s8 {" LACUNA_NAMES_##R \
                 "}, %" #R ", %" #R1 ", adds;\n}\n"                                              \
                 : LACUNA_INTEGERS_##R(d)                                                        \
                 : "l"(a), "l"(b), "r"(static_cast<u32>(adds)));                                 \
  }                                                                                              \
  template <>                                                                                    \
  __device__ __forceinline__ void wgmma_from_registers_e4m3<N / 8>(                              \
      float(&d)[N / 8][4], const u32(&a)[4], unsigned long long b, bool adds) {                  \
    asm volatile(                                                                                \
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #R5                                           \
        ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" LACUNA_NAMES_##R      \
        "}, {%" #R ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4 ", adds, 1, 1;\n}\n"                 \
        : LACUNA_REGISTERS_##R(d)                                                                \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<u32>(adds)));      \
  }
LACUNA_WGMMA_8BIT(64, 32, 33, 34, 35, 36, 37)
LACUNA_WGMMA_8BIT(128, 64, 65, 66, 67, 68, 69)
#undef LACUNA_WGMMA_8BIT

}  // namespace lacuna
