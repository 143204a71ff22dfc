// The producer of the wgmma family where keys and values lie in pages: many small copies, which
// four warps share. Two bring the keys of each step, and two its values, so that neither waits for
// slots of the other. All of them walk over the same rows and tiles:
//
//   warps 0, 1    look up the pages of a step, wait for k_empty, load K: each its share of the
//   boxes warps 2, 3    the same of v_empty and V warp 0        also asks which row comes next, for
//   all (producer_barrier), tells consumers of rows
//                 and steps, and brings queries
#pragma once

#include "attend/wgmma/producers/producer.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class PageProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  template <LoadedOperands kOperands>
  using Loader = WgmmaProducer<Config, Hooks, Args, StepLoads<Config, Args, kOperands>>;

 public:
  static constexpr int kWarps = Shape::kProducerWarps;  ///< that run

  __device__ __forceinline__ PageProducer(const Args& args, const Smem& smem)
      : args_(args), smem_(smem) {}

  __device__ __forceinline__ void run() {
    const int warp = warp_index() - Shape::kConsumerWarps;
    if (warp < Shape::kWarpsOfOperand) {
      Loader<LoadedOperands::kKeys>(args_, smem_, warp).run();
    } else {
      Loader<LoadedOperands::kValues>(args_, smem_, warp - Shape::kWarpsOfOperand).run();
    }
  }

 private:
  const Args& args_;
  const Smem smem_;
};

}  // namespace lacuna
