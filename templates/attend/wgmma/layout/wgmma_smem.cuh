// The shared memory of a block of the wgmma family, behind its tiles: barriers, messages, rows and
// votes; and the addresses of all of it. What each barrier says is drawn in layout/wgmma_shape.cuh.
#pragma once

#include "attend/wgmma/layout/wgmma_shape.cuh"

namespace lacuna {

/// Barriers, messages and votes, behind the tiles.
template <class Config>
struct WgmmaControl {
  using Shape = WgmmaShape<Config>;
  unsigned long long q_full[Config::kQueryBuffers], q_empty[Config::kQueryBuffers];
  unsigned long long k_full[Config::kStages], k_empty[Config::kStages];
  unsigned long long v_full[Config::kValueStages], v_empty[Config::kValueStages];
  typename Shape::Message messages[Config::kStages][Config::kWorkTiles];
  typename Shape::Row rows[Shape::kRowSlots];  ///< the first of those that a block takes together
  typename Shape::Vote votes[Shape::kVoteSlots][Shape::kConsumerWarps];
  // Where consumers look ahead, of each slot of K: drawn above.
  unsigned long long noted[Shape::kDecisionSlots], polled[Shape::kDecisionSlots];
  unsigned long long decided[Shape::kDecisionSlots];
  u32 chosen[Shape::kDecisionSlots];  ///< parts of its step that count, a bit each
  /// Barriers of the others: a warpgroup's warps have published.
  unsigned long long voted[Shape::kVoteSlots][Config::kWarpgroups];
  ColumnRing<Config::kGathers, Config::kWorkTiles, typename Shape::Row> ring;
  int shares[SplitKv<Config>::kIsSplit ? Shape::kRowSlots
                                       : 1];  ///< of `rows`, where they are split
  /// Of each place of `rows`, for the other warps of the producer: the leading one has written it.
  unsigned long long row_noted[Shape::kProducerWarps > 1 ? Shape::kRowSlots : 1];
  /// Where the producer looks rows up early (WgmmaProducer), what it does not hold in registers:
  /// the next row, and what is left of the row that it loads. Besides messages each has a walk, of
  /// up to 5 words, and a number or padding.
  static constexpr int kMessageWords = sizeof(typename Shape::Message) / 4;
  alignas(8) u32 next_row[Shape::kWalksMask ? 6 + kMessageWords : 1];
  alignas(8) u32 steps_left[Shape::kWalksMask ? 6 + 2 * kMessageWords : 1];
  int schedule_part;  ///< of the schedule of sequences, that the block makes next
  /// Of each slot of K: what is added to the logits of its keys.
  alignas(16) float column_bias[Config::kHasColumnBias ? Config::kStages : 1]
                               [Config::kHasColumnBias ? Config::kStepKeys : 4];
  CodeRing<code_places<Config>(), typename Shape::Message, Config::kStepKeys> codes;
};

/// Does a warpgroup take part in the work of a launch? If the sequences of a batch have few
/// queries, the rows of the first warpgroup may suffice for them, and the second one then has no
/// queries in any work tile. In three cases it takes part even so: if each warpgroup has work tiles
/// of its own, if a gate needs the votes of both, and if keys are gathered.
template <class Config, class Args>
__device__ __forceinline__ bool has_queries(const Args& args, int warpgroup) {
  using Shape = WgmmaShape<Config>;
  if constexpr (has_sequence_tiles<Config>() && !Shape::kOwnRows && !Shape::kHasGate &&
                !Config::kGathers) {
    return warpgroup * args.batch_schedule.group_queries < larger(args.attend.n_q, 1);
  } else {
    return true;
  }
}

/// Warps of a block by what they do, in a launch: a warpgroup without queries makes rows of codes
/// where there are codes, beside the producer's.
struct WarpsOfLaunch {
  int consume;  ///< that arrive when a slot has been read
  int convert;  ///< that arrive when a slot has been filled, where it is filled from codes
};
template <class Config, class Args>
__device__ __forceinline__ WarpsOfLaunch warps_of_launch(const Args& args) {
  WarpsOfLaunch warps{WgmmaShape<Config>::kConsumerWarps, kConvertingWarps};
  if constexpr (WgmmaShape<Config>::kMakesRows) {
    for (int w = 0; w < Config::kWarpgroups; ++w) {
      if (!has_queries<Config>(args, w)) warps.consume -= 4, warps.convert += 4;
    }
  }
  return warps;
}

/// Addresses of one block's shared memory.
template <class Config>
struct WgmmaSmem {
  using Shape = WgmmaShape<Config>;
  using Control = WgmmaControl<Config>;
  static_assert(sizeof(Control) <= wgmma_block<Config>().control_bytes());

  unsigned char*
      dynamic;  ///< all of it; at a multiple of 1024, the permutation of rows depends on it

  __device__ __forceinline__ u32 tiles() const { return shared_address(dynamic); }
  __device__ __forceinline__ Control* control() const {
    return reinterpret_cast<Control*>(dynamic + Shape::kControlOffset);
  }

  __device__ __forceinline__ u32 queries(u32 buffer, int warpgroup) const {
    return tiles() + buffer * Shape::kQueryBytes + warpgroup * Shape::kQueryPlaceBytes;
  }
  __device__ __forceinline__ u32 keys(u32 slot) const {
    return tiles() + Shape::kKeysOffset + slot * Shape::KeySlot::kBytes;
  }
  __device__ __forceinline__ u32 values(u32 slot) const {
    return tiles() + Shape::kValuesOffset + slot * Shape::ValueSlot::kBytes;
  }
  __device__ __forceinline__ u32 codes(u32 place) const {
    return tiles() + Shape::kCodesOffset + place * Shape::kCodePlaceBytes;
  }
  /// For a warpgroup, of the step whose keys are in the slot.
  __device__ __forceinline__ typename Shape::Message& message(u32 slot, int warpgroup) const {
    return control()->messages[slot][Shape::kOwnRows ? warpgroup : 0];
  }
  __device__ __forceinline__ static Mbarrier barrier(const unsigned long long& word) {
    return {shared_address(&word)};
  }

  /// By one thread.
  __device__ __forceinline__ void init_barriers(const WarpsOfLaunch& warps) const {
    for (int n = 0; n < Config::kQueryBuffers; ++n) {
      barrier(control()->q_full[n]).init(1);
      barrier(control()->q_empty[n]).init(warps.consume);
    }
    for (int n = 0; n < Config::kStages; ++n) {
      barrier(control()->k_full[n]).init(Shape::kMakesRows ? warps.convert : Shape::kKeyArrivals);
      barrier(control()->k_empty[n]).init(warps.consume);
      if constexpr (Shape::kLooksAhead) {
        barrier(control()->noted[n]).init(1);
        barrier(control()->polled[n]).init(Shape::kConsumerWarps);
        barrier(control()->decided[n]).init(1);
      }
    }
    for (int n = 0; n < Config::kValueStages; ++n) {
      barrier(control()->v_full[n]).init(Shape::kMakesRows ? warps.convert : Shape::kValueArrivals);
      barrier(control()->v_empty[n]).init(warps.consume);
    }
    for (int n = 0; n < Shape::kVoteSlots; ++n) {
      for (int w = 0; w < Config::kWarpgroups; ++w) barrier(control()->voted[n][w]).init(4);
    }
    if constexpr (Shape::kProducerWarps > 1) {
      for (int n = 0; n < Shape::kRowSlots; ++n) barrier(control()->row_noted[n]).init(1);
    }
    if constexpr (Config::kGathers) {
      for (int n = 0; n < control()->ring.kSteps; ++n) {
        barrier(control()->ring.step_full[n]).init(1);
        barrier(control()->ring.step_empty[n]).init(Shape::kGatherLoaders);
      }
    }
    if constexpr (Shape::kMakesRows) {
      for (int n = 0; n < code_places<Config>(); ++n) {
        barrier(control()->codes.full[n]).init(kCodeArrivals);
        barrier(control()->codes.empty[n]).init(warps.convert);
      }
    }
    fence_mbarrier_init();
  }
};

}  // namespace lacuna
