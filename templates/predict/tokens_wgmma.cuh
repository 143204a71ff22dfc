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
#include "base/pin.cuh"
#include "predict/pairs_decision.cuh"
#include "predict/pairs_look.cuh"
#include "predict/pairs_producer.cuh"

namespace lacuna {

/// A warpgroup that computes: two sets of 64 queries.
template <class Config, class Hooks, class Args>
class PairConsumer {
  using Shape = PairShape<Config>;
  using Smem = PairSmem<Config>;
  using Bounds = PairBounds<Config>;
  using Rows = PairRows<Config>;
  using Look = PairLook<Config>;
  using Ring = RingPosition<Shape::kStages>;
  static constexpr int kLastSet = Shape::kSets - 1, kLast = Shape::kProducts - 1;

 public:
  __device__ __forceinline__ PairConsumer(const Args& args, const Smem& smem, const KeepRow& block)
      : args_(args), smem_(smem), block_(block), warp_(warp_index()), team_(team_rows()) {
    const auto& bounds = smem.control().bounds[0];
    own_bound_ = static_cast<int>(&bounds[Look::bound_of_lane() % Shape::kBounds]
                                         [first_row(0) / kWarpRows][Look::tile_of_lane()] -
                                  &bounds[0][0][0]);
    pin(own_bound_);  // in a register, instead of worked out again for each product
  }

  __device__ __forceinline__ void run() {
    const Rows rows[Shape::kSets] = {rows_of(0), rows_of(1)};
    const PairThreshold thresholds[Shape::kSets] = {threshold_of(0), threshold_of(1)};
    prepare_tiles();
    typename Bounds::Queries queries[Shape::kSets];
#pragma unroll
    for (int set = 0; set < Shape::kSets; ++set)
      Bounds::load_queries(queries[set],
                           args_.predict.estimate_q_values +
                               (query_head(args_, block_.b, block_.h) * args_.predict.q_padded +
                                block_.q0 + first_row(set)) *
                                   Config::kHeadDim);
    Ring at;
    int step = find_step(at), buffer = 0;
    while (step >= 0) {
      const int word = step / Shape::kStepsOfWord;
      step = take_word(queries, rows, thresholds, at, step, buffer);
      team_barrier().sync();
      decide(word, buffer);
      __syncwarp();
      buffer ^= 1;
    }
  }

 private:
  /// The step of the first slot from `at` on of which the team sees anything; less than 0 if there
  /// is none. Others are passed on.
  __device__ __forceinline__ int find_step(Ring& at) const {
    while (true) {
      Smem::barrier(smem_.control().full[at.slot()]).wait(at.phase());
      const int step = smem_.control().steps[at.slot()];
      if (step < 0) return step;
      if (team_.q0 <= team_.q1 && sees_step<Config, Hooks>(args_, team_, step)) return step;
      release(at);
      at.advance();
    }
  }

  __device__ __forceinline__ void release(const Ring& at) const {
    __syncwarp();
    if (lane_index() == 0) Smem::barrier(smem_.control().empty[at.slot()]).arrive();
  }

  /// The steps of one word from `step` on. Returns the first of another. A product is looked at
  /// while the one after it is under way.
  __device__ __forceinline__ int take_word(const typename Bounds::Queries (&queries)[Shape::kSets],
                                           const Rows (&rows)[Shape::kSets],
                                           const PairThreshold (&thresholds)[Shape::kSets],
                                           Ring& at, int step, int buffer) const {
    auto& control = smem_.control();
    const int word = step / Shape::kStepsOfWord;
    typename Bounds::Sums sums[Shape::kSets];
    typename Bounds::Numbers numbers;
    typename Bounds::Fits fits;
    Ring next;
    int next_step;
    const auto look = [&](int set, int half) {
      wgmma_arrived(sums[set]);
      const auto closely = [&] {
        return Bounds::find_closely(sums[set], rows[set], numbers, control, at.slot(), half);
      };
      if constexpr (Shape::kLooksTwice) {
        const auto loose = Bounds::find_loosely(sums[set], rows[set], numbers);
        publish(Look::tell(loose, fits.set[set], thresholds[set], closely), step, set, half,
                buffer);
      } else {
        publish(Look::tell(closely(), fits.set[set]), step, set, half, buffer);
      }
      if (set == kLastSet && half == 0) Bounds::read_numbers(numbers, control, at.slot(), 1);
    };
    Bounds::multiply(sums[0], queries[0], smem_.keys(at.slot()), 0);
    while (true) {
      Bounds::read_numbers(numbers, control, at.slot(), 0);
      fits = Bounds::read_fits(control, at.slot(), rows);
#pragma unroll
      for (int n = 0; n < kLast; ++n) {
        const int set = n % Shape::kSets, next_set = (n + 1) % Shape::kSets;
        wgmma_wait<0>();
        Bounds::multiply(sums[next_set], queries[next_set], smem_.keys(at.slot()),
                         (n + 1) / Shape::kSets);
        look(set, n / Shape::kSets);
      }
      next = at;
      next.advance();
      next_step = find_step(next);
      wgmma_wait<0>();
      if (next_step < 0 || next_step / Shape::kStepsOfWord != word) break;
      Bounds::multiply(sums[0], queries[0], smem_.keys(next.slot()), 0);
      look(kLastSet, Shape::kHalves - 1);
      release(at);
      at = next;
      step = next_step;
    }
    look(kLastSet, Shape::kHalves - 1);
    release(at);
    at = next;
    return next_step;
  }

  /// What the warp says of a half's tiles.
  __device__ __forceinline__ void publish(int bound, int step, int set, int half,
                                          int buffer) const {
    const int of_word = step & (Shape::kStepsOfWord - 1);
    const int place = of_word * Shape::kTiles + half * Shape::kHalfTiles;
    int* const bounds = &smem_.control().bounds[buffer][0][set * 4][place];
    if (lane_index() < Look::kLanes) bounds[own_bound_] = bound;
    __syncwarp();
  }

  __device__ __forceinline__ Rows rows_of(int set) const {
    const auto& offset = smem_.control().offset;
    const int row = first_row(set) + lane_index() / 4;
    return {args_, block_, block_.q0 + row, {offset[row], offset[row + 8]}};
  }
  /// Of the query tile that a set is of.
  __device__ __forceinline__ PairThreshold threshold_of(int set) const {
    if constexpr (Shape::kLooksTwice) {
      const int i = (block_.q0 + first_row(set)) / Config::kTileQ;
      if (i < args_.predict.keep_q_tiles)
        return find_threshold<Config, Hooks>(args_,
                                             keep_row_of<Config>(args_, block_.b, block_.h, i));
    }
    return {kInfinity, kInfinity};
  }

  /// Of each of the team's query tiles: how many tiles it sees, and nothing kept.
  __device__ __forceinline__ void prepare_tiles() const {
    constexpr int kThreads = Shape::kTeamWarps * 32;
    const int thread = thread_index() % kThreads;
#pragma unroll 1
    for (int tile = 0; tile < Shape::kTeamTiles; ++tile) {
      const KeepRow row = row_of(tile);
      if (row.i >= args_.predict.keep_q_tiles) break;
      int visible = 0;
      for (int j = thread; j < args_.predict.keep_k_tiles; j += kThreads)
        visible += sees_tile<Config, Hooks>(args_, row, j);
      if (visible > 0) atomicAdd(&smem_.control().visible[first_set(tile)], visible);
      unsigned* const kept = kept_words(args_, row);
      for (int word = thread; word < args_.predict.keep_words; word += kThreads) kept[word] = 0;
    }
  }

  /// Each tile by one warp, by turns.
  __device__ __forceinline__ void decide(int word, int buffer) const {
    constexpr int kTiles = Shape::kTeamTiles;
    const int turn = (warp_ - word * kTiles) & (Shape::kTeamWarps - 1);
    if (turn >= kTiles) return;
    const KeepRow row = row_of(turn);
    if (row.i >= args_.predict.keep_q_tiles) return;
    PairDecision<Config, Hooks, Args>(args_, smem_, row, first_set(turn)).decide(word, buffer);
  }

  __device__ __forceinline__ int team() const { return warp_ / Shape::kTeamWarps; }
  __device__ __forceinline__ KeepRow team_rows() const {
    const int q0 = block_.q0 + team() * Shape::kTeamRows;
    return {q0 / Config::kTileQ, block_.h, block_.b, q0,
            smaller(q0 + Shape::kTeamRows, args_.attend.n_q) - 1};
  }
  /// A query tile of the team.
  __device__ __forceinline__ KeepRow row_of(int tile) const {
    return keep_row_of<Config>(args_, block_.b, block_.h, team_.q0 / Config::kTileQ + tile);
  }
  __device__ __forceinline__ int first_set(int tile) const {
    return team() * Shape::kTeamSets + tile * Shape::kTileSets;
  }
  /// Of the warp's 16 in a set, within the block.
  __device__ __forceinline__ int first_row(int set) const {
    return (warp_ / 4 * Shape::kSets + set) * kWarpgroupRows + warp_ % 4 * kWarpRows;
  }
  __device__ __forceinline__ NamedBarrier team_barrier() const {
    return {1 + team(), Shape::kTeamWarps * 32};
  }

  const Args& args_;
  const Smem smem_;
  const KeepRow& block_;
  const int warp_;
  const KeepRow team_;  ///< its queries
  int own_bound_;       ///< where in a buffer the lane says what it does of the first tiles
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
  if (n < Shape::kBlockSets) control.visible[n] = 0;
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
