// Logits of a row's tiles to p, by a block.
#pragma once

#include "arch/approx.cuh"
#include "select/keep/block_reduce.cuh"

namespace lacuna {

/// `log_sums`: of the logits of each tile, which the row's sum is made of; `logits`: what becomes
/// p, in the place of either. kIsRowMax: relative to the largest, else to the sum. Both were
/// written before the block met. A thread has few tiles: unrolled loops would only take longer to
/// compile.
template <int kThreads, bool kIsRowMax>
__device__ __forceinline__ void normalise_row(const float* log_sums, const float* logits, float* p,
                                              int tiles, ReduceScratch& scratch) {
  float largest = -kInfinity;
#pragma unroll 1
  for (int j = thread_index(); j < tiles; j += kThreads) {
    largest = fmaxf(largest, log_sums[j]);
  }
  largest = block_max<kThreads>(largest, scratch);
  if (largest == -kInfinity) largest = 0.0f;  // nothing is visible: every p is 0
  float sum = 0.0f;
#pragma unroll 1
  for (int j = thread_index(); j < tiles; j += kThreads) {
    sum += exp2_approx((log_sums[j] - largest) * kLog2E);
  }
  sum = block_sum<kThreads>(sum, scratch);
  const float share = sum > 0.0f ? (kIsRowMax ? 1.0f : 1.0f / sum) : sum;
#pragma unroll 1
  for (int j = thread_index(); j < tiles; j += kThreads) {
    p[j] = exp2_approx((logits[j] - largest) * kLog2E) * share;
  }
  __syncthreads();
}

}  // namespace lacuna
