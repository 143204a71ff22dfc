// The producers of select/exact/exact_sums.cuh and exact_largest.cuh: four warps that find the
// steps of which the block sees anything, each for itself, and load each a quarter of their keys.
// Protocol: select/exact/exact_shape.cuh.
#pragma once

#include "pipeline/step_walk.cuh"
#include "select/exact/exact_shape.cuh"
#include "select/four_consumers.cuh"

namespace lacuna {

template <class Config, class Args>
class ExactProducer {
  using Shape = ExactShape<Config>;
  using Smem = ExactSmem<Config>;
  using Element = typename Config::Element;
  using Panels = typename Shape::KeyPanels;
  static constexpr int kKeys = Shape::kStepKeys / Shape::kProducerWarps;  ///< of a warp
  /// Rows of one copy of the warp, such copies, and after how many chunks are permuted as before.
  static constexpr int kPassRows = 32 / Shape::kChunks, kPasses = kKeys / kPassRows;
  static constexpr int kPeriod = kSwizzleRows / kPassRows;

 public:
  __device__ __forceinline__ ExactProducer(const Args& args, const Smem& smem, const KeepRow& block)
      : args_(args),
        smem_(smem),
        warp_(warp_index() - Shape::kWarps),
        stride_(args.attend.k.stride_n),
        keys_(element_of<Element>(args.attend.k, block.b, block.h / args.attend.heads_per_kv, 0,
                                  lane_index() % Shape::kChunks * 8)) {}

  /// `sees(k0, k1)`: does the block see any of these keys?
  template <class Sees>
  __device__ __forceinline__ void run(const Sees& sees) const {
    const int keys = args_.attend.n_k, steps = ceil_div(keys, Shape::kStepKeys);
    const auto sees_step = [&](int step) {
      const int k0 = step * Shape::kStepKeys;
      return sees(k0, smaller(k0 + Shape::kStepKeys, keys) - 1);
    };
    StepRing<Shape, Smem> ring(smem_);
    StepWalk walk(steps);
    for (int step = walk.next(sees_step); step < steps; step = walk.next(sees_step)) {
      ring.await_slot();
      copy_keys(step * Shape::kStepKeys + warp_ * kKeys, ring.slot());
      cp_async_commit();
      write_step(step, ring.slot());
      ring.advance();
    }
    ring.drain();
    write_step(-1, ring.slot());
    ring.announce();
  }

 private:
  __device__ __forceinline__ void write_step(int step, u32 slot) const {
    if (warp_ == 0 && lane_index() == 0) smem_.control().steps[slot] = step;
  }

  /// The warp's keys, from key `first` on; those past the last become zeros.
  __device__ __forceinline__ void copy_keys(int first, u32 slot) const {
    const int lane_row = lane_index() / Shape::kChunks, chunk = lane_index() % Shape::kChunks;
    const int left = args_.attend.n_k - first - lane_row;
    const Element* source = keys_ + (first + static_cast<long long>(lane_row)) * stride_;
    u32 target[kPeriod];
#pragma unroll
    for (int n = 0; n < kPeriod; ++n)
      target[n] =
          smem_.keys(slot) + Panels::offset(warp_ * kKeys + n * kPassRows + lane_row, chunk);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const bool exists = pass * kPassRows < left;
      cp_async_16(target[pass % kPeriod] + pass / kPeriod * kSwizzleRows * kPanelRowBytes,
                  exists ? source : keys_, exists);
      source += kPassRows * stride_;
    }
  }

  const Args& args_;
  const Smem smem_;
  const int warp_;  ///< of the producers
  const long long stride_;
  const Element* keys_;  ///< of the head, the lane's chunk
};

}  // namespace lacuna
