// Integers: fixed-width names and the few constexpr helpers that device and host share.
#pragma once

namespace lacuna {

using u32 = unsigned int;

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int larger(int a, int b) { return a > b ? a : b; }

/// log2 of a power of two.
__host__ __device__ constexpr int log2_of(int n) { return n > 1 ? 1 + log2_of(n / 2) : 0; }

/// The largest power of two that divides `n`.
__host__ __device__ constexpr int power_of_two_factor(int n) { return n & -n; }

}  // namespace lacuna
