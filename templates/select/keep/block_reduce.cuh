// Reductions and prefix sums over the first kThreads threads of a block, in a fixed order: the same
// bits from run to run. Each of them takes part; each function ends with a barrier, so that its
// memory is free. kBarrier: 0 where these are all threads, else a named barrier.
#pragma once

#include "arch/warp.cuh"
#include "arch/warpgroup.cuh"

namespace lacuna {

template <int kThreads, int kBarrier>
__device__ __forceinline__ void sync_threads() {
  if constexpr (kBarrier == 0) {
    __syncthreads();
  } else {
    NamedBarrier{kBarrier, kThreads}.sync();
  }
}
/// Is it so in one of them?
template <int kThreads, int kBarrier>
__device__ __forceinline__ bool sync_any(bool condition) {
  if constexpr (kBarrier == 0) return __syncthreads_or(condition) != 0;
  return !NamedBarrier{kBarrier, kThreads}.sync_all(!condition);
}

/// Shared memory of the functions below.
template <int kWarps>
struct ReduceScratchOf {
  static constexpr int kMostWarps = kWarps;
  float floats[kMostWarps];
  int ints[kMostWarps];
};
using ReduceScratch = ReduceScratchOf<8>;

template <int kWarps>
__device__ __forceinline__ float* slots_of(ReduceScratchOf<kWarps>& scratch, float) {
  return scratch.floats;
}
template <int kWarps>
__device__ __forceinline__ int* slots_of(ReduceScratchOf<kWarps>& scratch, int) {
  return scratch.ints;
}

/// The same in all threads; `merge` is commutative.
template <int kThreads, int kBarrier = 0, class T, class Merge>
__device__ __forceinline__ T block_reduce(T x, ReduceScratch& scratch, Merge merge) {
  static_assert(kThreads / 32 <= ReduceScratch::kMostWarps);
  x = warp_reduce(x, merge);
  T* const slots = slots_of(scratch, x);
  const int own = warp_index();
  if (lane_index() == 0) slots[own] = x;
  sync_threads<kThreads, kBarrier>();
  x = slots[0];
#pragma unroll
  for (int warp = 1; warp < kThreads / 32; ++warp) x = merge(x, slots[warp]);
  sync_threads<kThreads, kBarrier>();
  return x;
}

template <int kThreads, int kBarrier = 0, class T>
__device__ __forceinline__ T block_sum(T x, ReduceScratch& scratch) {
  return block_reduce<kThreads, kBarrier>(x, scratch, [](T a, T b) { return a + b; });
}
template <int kThreads, int kBarrier = 0>
__device__ __forceinline__ float block_max(float x, ReduceScratch& scratch) {
  return block_reduce<kThreads, kBarrier>(x, scratch, [](float a, float b) { return fmaxf(a, b); });
}
template <int kThreads, int kBarrier = 0>
__device__ __forceinline__ int block_max(int x, ReduceScratch& scratch) {
  return block_reduce<kThreads, kBarrier>(x, scratch, [](int a, int b) { return larger(a, b); });
}

/// The sum of x over the threads before this one; adds the sum over all to `total`, which is the
/// same in all threads.
template <int kThreads, int kBarrier = 0, class T, int kWarps>
__device__ __forceinline__ T block_sum_before(T x, T& total, ReduceScratchOf<kWarps>& scratch) {
  static_assert(kThreads / 32 <= kWarps);
  T up_to;
  const T before = warp_sum_before(x, up_to);
  T* const slots = slots_of(scratch, x);
  const int own = warp_index();
  if (lane_index() == 31) slots[own] = up_to;
  sync_threads<kThreads, kBarrier>();
  T ahead = total;
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    if (warp < own) ahead += slots[warp];
    total += slots[warp];
  }
  sync_threads<kThreads, kBarrier>();
  return ahead + before;
}

}  // namespace lacuna
