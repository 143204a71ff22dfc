// The threads that decide a work tile together: those of a block, the first of them, which meet at
// a named barrier, or the lanes of a warp, which wait for no other warp. Every thread calls each
// function; results have the same bits from run to run.
#pragma once

#include "arch/redux.cuh"
#include "base/optional_field.cuh"
#include "select/keep/block_reduce.cuh"

namespace lacuna {

template <int kThreads, int kBarrier = 0>
class BlockTeam {
 public:
  static constexpr int kSize = kThreads;

  __device__ __forceinline__ explicit BlockTeam(ReduceScratch& scratch) : scratch_(scratch) {}
  __device__ __forceinline__ static int index() { return thread_index(); }
  __device__ __forceinline__ static int warp() { return warp_index(); }
  __device__ __forceinline__ static void sync() { sync_threads<kThreads, kBarrier>(); }
  __device__ __forceinline__ static bool sync_any(bool condition) {
    return lacuna::sync_any<kThreads, kBarrier>(condition);
  }
  template <class T>
  __device__ __forceinline__ T sum(T x) const {
    return block_sum<kThreads, kBarrier>(x, scratch_);
  }
  template <class T>
  __device__ __forceinline__ T max(T x) const {
    return block_max<kThreads, kBarrier>(x, scratch_);
  }
  template <class T>
  __device__ __forceinline__ T sum_before(T x, T& total) const {
    return sum_before(x, total, scratch_);
  }
  template <class T, int kWarps>
  __device__ __forceinline__ static T sum_before(T x, T& total, ReduceScratchOf<kWarps>& scratch) {
    return block_sum_before<kThreads, kBarrier>(x, total, scratch);
  }
  __device__ __forceinline__ int count_before(bool x, int& total) const {
    return sum_before(static_cast<int>(x), total);
  }

 private:
  ReduceScratch& scratch_;
};

/// Threads of a block that decide, where others have another part; they meet at barrier 1.
LACUNA_OPTIONAL_FIELD(int, deciding_threads, kDecidingThreads, 0)

template <class Config>
using DecidingTeam =
    BlockTeam<deciding_threads<Config>() == 0 ? Config::kThreads : deciding_threads<Config>(),
              deciding_threads<Config>() == 0 ? 0 : 1>;

class WarpTeam {
 public:
  static constexpr int kSize = 32;

  __device__ __forceinline__ static int index() { return lane_index(); }
  __device__ __forceinline__ static int warp() { return 0; }
  __device__ __forceinline__ static void sync() { __syncwarp(); }
  template <class T>
  __device__ __forceinline__ T sum(T x) const {
    return warp_reduce(x, [](T a, T b) { return a + b; });
  }
  __device__ __forceinline__ int sum(int x) const { return sum_over_lanes(x); }
  __device__ __forceinline__ float max(float x) const {
    return warp_reduce(x, [](float a, float b) { return fmaxf(a, b); });
  }
  __device__ __forceinline__ int max(int x) const { return max_over_lanes(x); }
  template <class T>
  __device__ __forceinline__ T sum_before(T x, T& total) const {
    T up_to;
    const T before = total + warp_sum_before(x, up_to);
    total += __shfl_sync(kAllLanes, up_to, 31);
    return before;
  }
  __device__ __forceinline__ int count_before(bool x, int& total) const {
    const u32 lanes = __ballot_sync(kAllLanes, x);
    const int before = total + __popc(lanes & ((1u << lane_index()) - 1u));
    total += __popc(lanes);
    return before;
  }
};

}  // namespace lacuna
