// The warp's matrix instructions: c += a * b, m16n8k16 for 16-bit elements and m16n8k32 for bytes.
//
// Layout, with g = lane / 4 and t = lane % 4: c[0..1] are row g, columns 2t and 2t + 1; c[2..3] the
// same of row g + 8. Two neighbouring c blocks, packed, are one `a` fragment of 16 columns.
// A register of `a` is four bytes of a row: a[0] of row g at byte 4t, a[1] of row g + 8, a[2] and
// a[3] the same 16 bytes on; b0 and b1 are those bytes of column g. ldmatrix loads both in this
// order, whether an element has one byte or two.
#pragma once

#include "base/types.cuh"

namespace lacuna {

template <class Element>
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);

template <>
__device__ __forceinline__ void mma_m16n8k16<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0,
                                                   u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma_m16n8k16<f16>(float (&c)[4], const u32 (&a)[4], u32 b0,
                                                  u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Signed bytes, exact in i32.
__device__ __forceinline__ void mma_m16n8k32_s8(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// e4m3 (sm_89 and newer). Some units keep fewer than 24 bits of the sum: long sums are added up
/// outside.
__device__ __forceinline__ void mma_m16n8k32_e4m3(float (&c)[4], const u32 (&a)[4], u32 b0,
                                                  u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace lacuna
