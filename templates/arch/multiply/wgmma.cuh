// Matrix products of a warpgroup (sm_90a): 64 rows of A by N columns of B into f32 accumulators in
// registers, asynchronously. B lies in shared memory, A too or in registers.
//
//   wgmma_begin();                 registers written so far may be read
//   wgmma_...(...); ...            issued in order
//   wgmma_commit();                closes a group
//   wgmma_wait<n>(), (n)           at most n groups are still under way
//
// An accumulator is float[N / 8][4], as that of mma.sync: of block j a lane holds row g, columns
// 8j + 2q and + 1, then row g + 8. Between issue and wait no register of a product is touched.
#pragma once

#include "base/types.cuh"

namespace lacuna {

__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// The same for what is a constant only after unrolling, 0 to 4.
__device__ __forceinline__ void wgmma_wait(int pending) {
  if (pending == 0) wgmma_wait<0>();
  if (pending == 1) wgmma_wait<1>();
  if (pending == 2) wgmma_wait<2>();
  if (pending == 3) wgmma_wait<3>();
  if (pending == 4) wgmma_wait<4>();
}

/// Results of products that were waited for are read from here on, and not before.
template <int kBlocks>
__device__ __forceinline__ void fence_accumulator(float (&accumulator)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(accumulator[n][i])::"memory");
  }
}

// Operand lists of inline assembly have to be spelled out: %0, %1, ... and the registers for them.
#define LACUNA_NAMES_32                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LACUNA_NAMES_40 LACUNA_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define LACUNA_NAMES_48 LACUNA_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define LACUNA_NAMES_56 LACUNA_NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define LACUNA_NAMES_64                                                              \
  LACUNA_NAMES_32                                                                    \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LACUNA_NAMES_96                                                              \
  LACUNA_NAMES_64                                                                    \
  ", "                                                                               \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define LACUNA_NAMES_128                                                                       \
  LACUNA_NAMES_64                                                                              \
  ", "                                                                                         \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "           \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
  "%111, "                                                                                     \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"
#define LACUNA_BLOCK(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define LACUNA_BLOCKS_4(d, n) \
  LACUNA_BLOCK(d, n), LACUNA_BLOCK(d, n + 1), LACUNA_BLOCK(d, n + 2), LACUNA_BLOCK(d, n + 3)
#define LACUNA_REGISTERS_32(d) LACUNA_BLOCKS_4(d, 0), LACUNA_BLOCKS_4(d, 4)
#define LACUNA_REGISTERS_40(d) LACUNA_REGISTERS_32(d), LACUNA_BLOCK(d, 8), LACUNA_BLOCK(d, 9)
#define LACUNA_REGISTERS_48(d) LACUNA_REGISTERS_32(d), LACUNA_BLOCKS_4(d, 8)
#define LACUNA_REGISTERS_56(d) LACUNA_REGISTERS_48(d), LACUNA_BLOCK(d, 12), LACUNA_BLOCK(d, 13)
#define LACUNA_REGISTERS_64(d) LACUNA_REGISTERS_32(d), LACUNA_BLOCKS_4(d, 8), LACUNA_BLOCKS_4(d, 12)
#define LACUNA_REGISTERS_96(d) \
  LACUNA_REGISTERS_64(d), LACUNA_BLOCKS_4(d, 16), LACUNA_BLOCKS_4(d, 20)
#define LACUNA_REGISTERS_128(d)                                                                   \
  LACUNA_REGISTERS_64(d), LACUNA_BLOCKS_4(d, 16), LACUNA_BLOCKS_4(d, 20), LACUNA_BLOCKS_4(d, 24), \
      LACUNA_BLOCKS_4(d, 28)

/// Is B contiguous in the product's depth ("K-major"), or in its columns ("MN-major")?
enum class Contiguous { kDepth = 0, kColumns = 1 };

/// d = A B, or d += A B, 16 deep: A from shared memory. Both are contiguous in depth.
template <class Element, int kBlocks>
__device__ void wgmma_from_smem(float (&d)[kBlocks][4], unsigned long long a, unsigned long long b,
                                bool adds);
/// The same with a fragment of A in registers.
template <class Element, Contiguous kB, int kBlocks>
__device__ void wgmma_from_registers(float (&d)[kBlocks][4], const u32 (&a)[4],
                                     unsigned long long b, bool adds);
/// Four of those in a row, 64 deep: the same instructions, but the compiler passes the accumulator
/// on once and not four times, of which it has less to do.
template <class Element, Contiguous kB, int kBlocks>
__device__ void wgmma_four_from_registers(float (&d)[kBlocks][4], const u32 (*a)[4],
                                          const unsigned long long (&b)[4], bool adds);

// One specialisation for each N and element type. R: registers of the accumulator; the operands
// after them are %R, ... N of 80, 96 and 112 is for values alone.
#define LACUNA_WGMMA_SHAPE(ELEMENT, N) \
  "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #ELEMENT "." #ELEMENT " {"
#define LACUNA_WGMMA_FROM_REGISTERS(ELEMENT, N, R, R1, R2, R3, R4, R5, B, TRANSPOSED)          \
  template <>                                                                                  \
  __device__ __forceinline__ void wgmma_from_registers<ELEMENT, Contiguous::B, N / 8>(         \
      float(&d)[N / 8][4], const u32(&a)[4], unsigned long long b, bool adds) {                \
    asm volatile(                                                                              \
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #R5 ", 0;\n" LACUNA_WGMMA_SHAPE(ELEMENT, N) \
            LACUNA_NAMES_##R "}, {%" #R ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4               \
                             ", adds, 1, 1, " #TRANSPOSED ";\n}\n"                             \
        : LACUNA_REGISTERS_##R(d)                                                              \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<u32>(adds)));    \
  }
#define LACUNA_WGMMA(ELEMENT, N, R, R1, R2, R3, R4, R5)                                          \
  template <>                                                                                    \
  __device__ __forceinline__ void wgmma_from_smem<ELEMENT, N / 8>(                               \
      float(&d)[N / 8][4], unsigned long long a, unsigned long long b, bool adds) {              \
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #R2 ", 0;\n" LACUNA_WGMMA_SHAPE(     \
                     ELEMENT, N) LACUNA_NAMES_##R "}, %" #R ", %" #R1 ", adds, 1, 1, 0, 0;\n}\n" \
                 : LACUNA_REGISTERS_##R(d)                                                       \
                 : "l"(a), "l"(b), "r"(static_cast<u32>(adds)));                                 \
  }                                                                                              \
  LACUNA_WGMMA_FROM_REGISTERS(ELEMENT, N, R, R1, R2, R3, R4, R5, kDepth, 0)                      \
  LACUNA_WGMMA_FROM_REGISTERS(ELEMENT, N, R, R1, R2, R3, R4, R5, kColumns, 1)

// Operands: the accumulator, four fragments A0 .. A3, descriptors B0 .. B3, the flag ADDS.
#define LACUNA_FRAGMENT(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#define LACUNA_WGMMA_STEP(ELEMENT, N, R, A, B, ADDS, TRANSPOSED) \
  LACUNA_WGMMA_SHAPE(ELEMENT, N)                                 \
  LACUNA_NAMES_##R "}, {" A "}, %" #B ", " ADDS ", 1, 1, " #TRANSPOSED ";\n"
#define LACUNA_WGMMA_FOUR_OF(ELEMENT, N, R, A0, A1, A2, A3, B0, B1, B2, B3, ADDS, B, TRANSPOSED) \
  template <>                                                                                    \
  __device__ __forceinline__ void wgmma_four_from_registers<ELEMENT, Contiguous::B, N / 8>(      \
      float(&d)[N / 8][4], const u32(*a)[4], const unsigned long long(&b)[4], bool adds) {       \
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #ADDS                                \
                 ", 0;\n" LACUNA_WGMMA_STEP(ELEMENT, N, R, A0, B0, "adds", TRANSPOSED)           \
                     LACUNA_WGMMA_STEP(ELEMENT, N, R, A1, B1, "1", TRANSPOSED)                   \
                         LACUNA_WGMMA_STEP(ELEMENT, N, R, A2, B2, "1", TRANSPOSED)               \
                             LACUNA_WGMMA_STEP(ELEMENT, N, R, A3, B3, "1", TRANSPOSED) "}\n"     \
                 : LACUNA_REGISTERS_##R(d)                                                       \
                 : LACUNA_FRAGMENT(a[0]), LACUNA_FRAGMENT(a[1]), LACUNA_FRAGMENT(a[2]),          \
                   LACUNA_FRAGMENT(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]),            \
                   "r"(static_cast<u32>(adds)));                                                 \
  }
#define LACUNA_WGMMA_FOUR(ELEMENT, N, R, ...)                 \
  LACUNA_WGMMA_FOUR_OF(ELEMENT, N, R, __VA_ARGS__, kDepth, 0) \
  LACUNA_WGMMA_FOUR_OF(ELEMENT, N, R, __VA_ARGS__, kColumns, 1)

#define LACUNA_WGMMA_OF(ELEMENT)                                                                 \
  LACUNA_WGMMA(ELEMENT, 64, 32, 33, 34, 35, 36, 37)                                              \
  LACUNA_WGMMA(ELEMENT, 128, 64, 65, 66, 67, 68, 69)                                             \
  LACUNA_WGMMA(ELEMENT, 192, 96, 97, 98, 99, 100, 101)                                           \
  LACUNA_WGMMA(ELEMENT, 256, 128, 129, 130, 131, 132, 133)                                       \
  LACUNA_WGMMA_FOUR(ELEMENT, 64, 32, "%32, %33, %34, %35", "%36, %37, %38, %39",                 \
                    "%40, %41, %42, %43", "%44, %45, %46, %47", 48, 49, 50, 51, 52)              \
  LACUNA_WGMMA_FOUR(ELEMENT, 128, 64, "%64, %65, %66, %67", "%68, %69, %70, %71",                \
                    "%72, %73, %74, %75", "%76, %77, %78, %79", 80, 81, 82, 83, 84)              \
  LACUNA_WGMMA_FOUR(ELEMENT, 192, 96, "%96, %97, %98, %99", "%100, %101, %102, %103",            \
                    "%104, %105, %106, %107", "%108, %109, %110, %111", 112, 113, 114, 115, 116) \
  LACUNA_WGMMA_FOUR(ELEMENT, 256, 128, "%128, %129, %130, %131", "%132, %133, %134, %135",       \
                    "%136, %137, %138, %139", "%140, %141, %142, %143", 144, 145, 146, 147, 148) \
  LACUNA_WGMMA_FOUR_OF(ELEMENT, 80, 40, "%40, %41, %42, %43", "%44, %45, %46, %47",              \
                       "%48, %49, %50, %51", "%52, %53, %54, %55", 56, 57, 58, 59, 60, kColumns, \
                       1)                                                                        \
  LACUNA_WGMMA_FOUR_OF(ELEMENT, 96, 48, "%48, %49, %50, %51", "%52, %53, %54, %55",              \
                       "%56, %57, %58, %59", "%60, %61, %62, %63", 64, 65, 66, 67, 68, kColumns, \
                       1)                                                                        \
  LACUNA_WGMMA_FOUR_OF(ELEMENT, 112, 56, "%56, %57, %58, %59", "%60, %61, %62, %63",             \
                       "%64, %65, %66, %67", "%68, %69, %70, %71", 72, 73, 74, 75, 76, kColumns, \
                       1)
LACUNA_WGMMA_OF(bf16)
LACUNA_WGMMA_OF(f16)
#undef LACUNA_WGMMA_OF
#undef LACUNA_WGMMA_FOUR
#undef LACUNA_WGMMA_FOUR_OF
#undef LACUNA_WGMMA_STEP
#undef LACUNA_FRAGMENT
#undef LACUNA_WGMMA
#undef LACUNA_WGMMA_FROM_REGISTERS
#undef LACUNA_WGMMA_SHAPE

}  // namespace lacuna
