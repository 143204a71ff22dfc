// The warp's matrix instruction m16n8k16: c += a * b with f32 accumulators.
//
// Layout, with g = lane / 4 and t = lane % 4: c[0..1] are row g, columns 2t and 2t + 1; c[2..3] the
// same of row g + 8. Two neighbouring c blocks, packed, are one `a` fragment of 16 columns.
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

}  // namespace lacuna
