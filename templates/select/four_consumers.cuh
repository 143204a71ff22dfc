// A block that compares tokens by wgmma: its roles and shared memory, which queries are its own,
// and how its producers hand over steps. What select/exact and select/token_pairs have in common.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "arch/copy/mbarrier.cuh"
#include "arch/copy/tma.cuh"
#include "arch/warp.cuh"
#include "pipeline/ring_position.cuh"
#include "select/keep/keep_row.cuh"

namespace lacuna {

/// Four warpgroups compute, and a fifth loads.
struct FourConsumers {
  static constexpr int kWarpgroups = 4;
  static constexpr int kWarps = 4 * kWarpgroups;  ///< that compute
  static constexpr int kProducerWarps = 4;
  static constexpr int kFullArrivals = kProducerWarps, kEmptyArrivals = kWarps;
  /// Of 96 at the start, the most of five warpgroups: no more can be dealt out than there were.
  static constexpr int kConsumerRegisters = 112, kProducerRegisters = 32;
  static_assert(kWarpgroups * kConsumerRegisters + kProducerRegisters <= 96 * (kWarpgroups + 1));
};

/// Addresses of one block's shared memory: slots of keys, queries, Shape::Control.
template <class Shape>
struct FourConsumersSmem {
  unsigned char* dynamic;  ///< all of it; at a multiple of 1024, as the permutation of rows wants

  __device__ __forceinline__ typename Shape::Control& control() const {
    return *reinterpret_cast<typename Shape::Control*>(dynamic + Shape::kControlOffset);
  }
  __device__ __forceinline__ u32 keys(u32 slot) const {
    return shared_address(dynamic) + slot * static_cast<u32>(Shape::kKeyBytes);
  }
  __device__ __forceinline__ u32 queries() const {
    return shared_address(dynamic) + static_cast<u32>(Shape::kQueryOffset);
  }
  __device__ __forceinline__ static Mbarrier barrier(const unsigned long long& place) {
    return {shared_address(&place)};
  }
  /// By a warp: the slot's step is there; the warp has read it for the last time.
  template <class Ring>
  __device__ __forceinline__ void await(const Ring& at) const {
    barrier(control().full[at.slot()]).wait(at.phase());
  }
  template <class Ring>
  __device__ __forceinline__ void release(const Ring& at) const {
    __syncwarp();
    if (lane_index() == 0) barrier(control().empty[at.slot()]).arrive();
  }
  /// By threads n below kStages.
  __device__ __forceinline__ void init_slot(int n) const {
    barrier(control().full[n]).init(Shape::kFullArrivals);
    barrier(control().empty[n]).init(Shape::kEmptyArrivals);
    fence_mbarrier_init();
  }
};

/// Are there queries for this block? In a batch of one length there are for every block; of a
/// sequence that is shorter than the longest, some blocks have none.
template <class Config, class Shape, class Args>
__device__ __forceinline__ bool has_rows(const Args& args) {
  return !is_beyond<Config>(block_index(),
                            args.attend.n_h * ceil_div(args.attend.n_q, Shape::kRows));
}

/// The queries of a block: from the last on, since under a causal mask those see the most.
template <class Config, class Shape, class Args>
__device__ __forceinline__ KeepRow rows_of_block(const Args& args) {
  constexpr int kRows = Shape::kRows;
  const int blocks = ceil_div(args.attend.n_q, kRows);
  const int head = block_index() / blocks, b = head / args.attend.n_h;
  const int q0 = (blocks - 1 - (block_index() - head * blocks)) * kRows;
  return {q0 / Config::kTileQ, head - b * args.attend.n_h, b, q0,
          smaller(q0 + kRows, args.attend.n_q) - 1};
}

/// The slots that one warp of the producers fills, a part of each. It never waits for the other
/// warps. A step is announced after the copies of the next step have been issued: its own have
/// landed by then, and the warp that issued them makes them visible to wgmma, so that consumers
/// need no fence.
///
///   for each step    await_slot, copies, cp_async_commit, what the slot says of the step; advance
///   in the end       drain, what the slot says of the end; announce
template <class Shape, class Smem>
class StepRing {
 public:
  __device__ __forceinline__ explicit StepRing(const Smem& smem) : smem_(smem) {}

  __device__ __forceinline__ u32 slot() const { return at_.slot(); }
  __device__ __forceinline__ void await_slot() const {
    Smem::barrier(smem_.control().empty[at_.slot()]).wait(at_.phase() ^ 1);
  }
  __device__ __forceinline__ void advance() {
    if (at_.count > 0) announce_before();
    pass();
  }
  __device__ __forceinline__ void drain() const {
    cp_async_wait<0>();
    if (at_.count > 0) announce(at_.before());
    await_slot();
  }
  __device__ __forceinline__ void announce() const { announce(at_); }

  /// What `advance` does, one by one: the step before, and on to the next slot.
  __device__ __forceinline__ void announce_before() const {
    cp_async_wait<1>();
    announce(at_.before());
  }
  __device__ __forceinline__ void pass() { at_.advance(); }
  /// Instead of leaving it to the next step.
  __device__ __forceinline__ void announce_when_there() const {
    cp_async_wait<0>();
    announce(at_);
  }

 private:
  using Position = RingPosition<Shape::kStages>;

  /// Tells the consumers that the warp has written its part of the step.
  __device__ __forceinline__ void announce(const Position& at) const {
    fence_proxy_async();
    __syncwarp();
    if (lane_index() == 0) Smem::barrier(smem_.control().full[at.slot()]).arrive();
  }

  const Smem& smem_;
  Position at_;
};

}  // namespace lacuna
