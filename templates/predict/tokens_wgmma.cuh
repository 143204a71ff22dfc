// `estimate` of all pairs of tokens in integers, reduced to the largest weight of each tile, by
// wgmma (sm_90a); then `select`. The exact mass that weights are relative to is there already
// (predict/reference.cuh, or the caller's).
//
// A block takes 256 queries and goes once along the keys. What counts is which tiles are kept, so a
// tile's largest weight is not computed but bounded, closely, which costs half the instructions;
// the few tiles for which that is not enough are computed again. The bits are those of
// predict/tokens.cuh.
#pragma once

#include "arch/mbarrier.cuh"
#include "arch/tma.cuh"
#include "predict/pairs_decision.cuh"
#include "predict/pairs_producer.cuh"

namespace lacuna {

/// A warpgroup that computes: 64 queries.
template <class Config, class Hooks, class Args>
class PairConsumer {
  using Shape = PairShape<Config>;
  using Smem = PairSmem<Config>;
  using Bounds = PairBounds<Config>;
  using Rows = PairRows<Config>;

 public:
  __device__ __forceinline__ PairConsumer(const Args& args, const Smem& smem, const KeepRow& block)
      : args_(args),
        smem_(smem),
        warp_(warp_index()),
        q0_(block.q0 + warp_ / 4 * kWarpgroupRows),
        row_(keep_row_of<Config>(args, block.b, block.h, q0_ / Config::kTileQ)),
        has_tile_(row_.i < args.predict.keep_q_tiles) {}

  __device__ __forceinline__ void run() {
    const Rows rows = prepare();
    typename Bounds::Queries queries;
    Bounds::load_queries(queries, args_.predict.estimate_q_values +
                                      (query_head(args_, row_.b, row_.h) * args_.predict.q_padded +
                                       q0_ + warp_ % 4 * kWarpRows) *
                                          Config::kHeadDim);
    const PairDecision<Config, Hooks, Args> decision(args_, smem_, row_, tile_warpgroup());
    RingPosition<Shape::kStages> at;
    int word = -1, buffer = 0;
    while (true) {
      Smem::barrier(smem_.control().full[at.slot()]).wait(at.phase());
      const int step = smem_.control().steps[at.slot()];
      const bool sees = step >= 0 && has_tile_ && sees_step<Config, Hooks>(args_, row_, step);
      const int next_word = sees ? step / Shape::kStepsOfWord : word;
      if (word >= 0 && (step < 0 || next_word != word)) {
        tile_barrier().sync();
        if (warp_ % kTileWarps == word % kTileWarps) decision.decide(word, buffer);
        __syncwarp();
        buffer ^= 1;
      }
      if (step < 0) return;
      word = next_word;
      if (sees) take_step(queries, rows, step, at.slot(), buffer);
      __syncwarp();
      if (lane_index() == 0) Smem::barrier(smem_.control().empty[at.slot()]).arrive();
      at.advance();
    }
  }

 private:
  static constexpr int kTileWarps = 4 * Shape::kTileWarpgroups;

  /// What the loop needs of the rows, and what decisions need of the tile.
  __device__ __forceinline__ Rows prepare() const {
    auto& control = smem_.control();
    const int row = warp_ * kWarpRows + lane_index() / 4;
    const Rows rows(args_, row_, q0_ + warp_ % 4 * kWarpRows + lane_index() / 4,
                    {control.offset[row], control.offset[row + 8]});
    if (!has_tile_) return rows;
    const int first = tile_warpgroup();
    // Floats that are not negative are ordered like their bits, and NaN comes last.
    atomicMax(&control.row_scale[first], __float_as_int(rows.to_log2));
    atomicMax(&control.slack[first], __float_as_int(rows.slack));
    const int tile_thread = thread_index() % (kTileWarps * 32);
    int visible = 0;
    for (int j = tile_thread; j < args_.predict.keep_k_tiles; j += kTileWarps * 32)
      visible += sees_tile<Config, Hooks>(args_, row_, j);
    if (visible > 0) atomicAdd(&control.visible[first], visible);
    unsigned* const kept = kept_words(args_, row_);
    for (int word = tile_thread; word < args_.predict.keep_words; word += kTileWarps * 32)
      kept[word] = 0;
    return rows;  // all this is read, or written again, behind the tile's barrier
  }

  __device__ __forceinline__ void take_step(const typename Bounds::Queries& queries,
                                            const Rows& rows, int step, u32 slot,
                                            int buffer) const {
    fence_proxy_async();
    auto& control = smem_.control();
    typename Bounds::Sums sums;
    int bounds[Shape::kHalfTiles];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Bounds::multiply(sums, queries, smem_.keys(slot), half);
      if (half > 0) publish(bounds, step, slot, half - 1, buffer);  // while that is under way
      const float* const bias = Bounds::lane_numbers(control, slot) + half * Shape::kHalfKeys;
      const auto numbers = Bounds::read_numbers(control, slot, half, rows);
      const auto biases = Bounds::read_biases(bias);
      Bounds::await(sums);
      Bounds::find(bounds, sums, rows, numbers, biases, bias);
    }
    publish(bounds, step, slot, 1, buffer);
  }

  /// The bounds of half of a step's tiles, each lane's.
  __device__ __forceinline__ void publish(int (&bounds)[Shape::kHalfTiles], int step, u32 slot,
                                          int half, int buffer) const {
    auto& control = smem_.control();
#pragma unroll
    for (int t = 0; t < Shape::kHalfTiles; ++t) bounds[t] = max_over_lanes(bounds[t]);
    if (lane_index() == 0) {
      const int place = step % Shape::kStepsOfWord * Shape::kTiles + half * Shape::kHalfTiles;
      copy_tiles(control.largest[buffer][warp_] + place, bounds);
      if (warp_ % 4 == 0) {
        float scales[Shape::kHalfTiles];
        Bounds::find_scales(scales, control.unit_scale[slot] + half * Shape::kHalfUnits);
        copy_tiles(control.largest_scale[buffer][warp_ / 4] + place, scales);
      }
    }
    __syncwarp();
  }

  /// To a place that is aligned to them all.
  template <class T>
  __device__ __forceinline__ static void copy_tiles(T* target,
                                                    const T (&tiles)[Shape::kHalfTiles]) {
    struct alignas(sizeof(T) * Shape::kHalfTiles) All {
      T tiles[Shape::kHalfTiles];
    } all;
#pragma unroll
    for (int t = 0; t < Shape::kHalfTiles; ++t) all.tiles[t] = tiles[t];
    *reinterpret_cast<All*>(target) = all;
  }

  /// The first warpgroup of those that have this one's tile, and their barrier.
  __device__ __forceinline__ int tile_warpgroup() const {
    return warp_ / kTileWarps * Shape::kTileWarpgroups;
  }
  __device__ __forceinline__ NamedBarrier tile_barrier() const {
    return {1 + tile_warpgroup(), kTileWarps * 32};
  }

  const Args& args_;
  const Smem smem_;
  const int warp_, q0_;
  const KeepRow row_;  ///< the tile of this warpgroup's queries
  const bool has_tile_;
};

/// Barriers, and what of each row the caller or the kernel before have found; by all threads.
template <class Config, class Args>
__device__ __forceinline__ void prepare_pairs(const Args& args, const PairSmem<Config>& smem,
                                              const KeepRow& block) {
  using Shape = PairShape<Config>;
  auto& control = smem.control();
  const int n = thread_index();
  if (n < Shape::kStages) {
    PairSmem<Config>::barrier(control.full[n]).init(Shape::kFullArrivals);
    PairSmem<Config>::barrier(control.empty[n]).init(Shape::kEmptyArrivals);
    fence_mbarrier_init();
  }
  if (n < Shape::kWarpgroups) control.visible[n] = control.row_scale[n] = control.slack[n] = 0;
  if (n < Shape::kRows) {
    const int q = block.q0 + n;
    float offset = kInfinity;  // of a row that takes no part
    if (q <= block.q1) {
      if constexpr (Config::kNormalise == Normalise::kLse) {
        offset =
            args.predict.scores[query_head(args, block.b, block.h) * args.predict.q_padded + q];
      } else {
        const LseArg& lse = args.predict.previous_lse;
        const float given = lse.data[block.b * lse.stride_b + block.h * lse.stride_h + q] * kLog2E;
        if (given > -kInfinity) offset = given;
      }
    }
    control.offset[n] = offset;
  }
  __syncthreads();
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_token_pairs(const Args& args) {
  extern __shared__ __align__(1024) unsigned char pair_smem[];
  const PairSmem<Config> smem{pair_smem};
  const KeepRow block = rows_of_block<Config>(args);
  prepare_pairs<Config>(args, smem, block);
  using Shape = PairShape<Config>;
  if (warp_index() < Shape::kWarps) {
    grow_registers<Shape::kConsumerRegisters>();
    PairConsumer<Config, Hooks, Args>(args, smem, block).run();
  } else {
    shrink_registers<Shape::kProducerRegisters>();
    PairProducer<Config, Hooks, Args>(args, smem, block).run();
  }
}

}  // namespace lacuna
