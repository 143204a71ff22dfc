// Stores of four 8x8 matrices of 16-bit elements to shared memory (sm_90): the inverse of
// ldmatrix_x4. Lane l gives the address of row l % 8 of matrix l / 8.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

__device__ __forceinline__ void stmatrix_x4(u32 address, const u32 (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

}  // namespace lacuna
