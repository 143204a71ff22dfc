// Loads of four 8x8 matrices of 16-bit elements from shared memory. Lane l gives the address of row
// l % 8 of matrix l / 8; every lane receives two neighbouring elements of each matrix.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

__device__ __forceinline__ void ldmatrix_x4(u32 (&matrices)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_transposed(u32 (&matrices)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

}  // namespace lacuna
