// The producer of the wgmma family for sequences, in rows or in pages. Their loads take more
// instructions than those of one shape: tensor maps of each sequence, and in pages many small
// copies. What one warp executes delays the consumers' warps of its scheduler, so four warps, one
// on each, share the work. All of them walk over the same rows and steps:
//
//   warps 0, 1    take steps in turns: look up its pages, wait for k_empty, load K
//   warps 2, 3    the same of v_empty and V; neither pair waits for slots of the other
//   warp 0        leads: finds rows, notes each for the others (row_noted) and for consumers, and
//                 brings queries
#pragma once

#include "attend/wgmma/producers/producer.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class SequenceProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  /// A mask of one range leaves registers for the row, if just: not beside pages in a branch.
  static constexpr bool kKeepsRow =
      !hides_rows<Config>() &&
      (!Config::kHasMask || (Hooks::MaskRow::kRanges == 1 && kMaskIsRanges<Hooks> &&
                             !(is_branch<Config>() && attends_to_pages<Config>())));
  template <LoadedOperands kOperands>
  using Loader = WgmmaProducer<Config, Hooks, Args, StepLoads<Config, Args, kOperands, kKeepsRow>>;

 public:
  static constexpr int kWarps = Shape::kProducerWarps;  ///< that run

  __device__ __forceinline__ SequenceProducer(const Args& args, const Smem& smem)
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
