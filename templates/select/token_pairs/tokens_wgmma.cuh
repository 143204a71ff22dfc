// `estimate` of all pairs of tokens in integers, reduced to the largest weight of each tile, by
// wgmma (sm_90a); then `select`. The exact mass that weights are relative to has been computed
// before (select/tokens/reference.cuh), or the caller passes it.
//
// A block takes 256 queries and walks along the keys once. Only the decision about a tile matters,
// so its largest weight is bounded instead of computed, which costs half the instructions. Tiles
// that the bounds do not decide are computed exactly. The bits equal those of
// select/tokens/tokens.cuh.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "base/pin.cuh"
#include "select/token_pairs/bound_classifier.cuh"
#include "select/token_pairs/decision.cuh"
#include "select/token_pairs/token_pair_producer.cuh"

namespace lacuna {

/// A warpgroup that computes: 64 queries.
template <class Config, class Hooks, class Args>
class TokenPairConsumer {
  using Shape = TokenPairShape<Config>;
  using Smem = TokenPairSmem<Config>;
  using Bounds = TokenPairBounds<Config>;
  using Rows = TokenPairRows<Config>;
  using Look = BoundClassifier<Config>;
  using Ring = RingPosition<Shape::kStages>;

 public:
  __device__ __forceinline__ TokenPairConsumer(const Args& args, const Smem& smem,
                                               const KeepRow& block)
      : args_(args),
        smem_(smem),
        warp_(warp_index()),
        tile_(rows_of_team<Config>(args, block, team())),
        keys_(Shape::KeyPanel::along_rows(uniform_over_warp(smem.keys(0)))) {
    const auto& bounds = smem.control().bounds[0];
    own_bound_ = static_cast<int>(&bounds[Look::bound_of_lane() % Shape::kBounds]
                                         [first_row() / kWarpRows][Look::tile_of_lane()] -
                                  &bounds[0][0][0]);
    pin(own_bound_);  // in a register, instead of worked out again for each product
  }

  __device__ __forceinline__ void run() {
    const Look look(rows_of_lane(), find_own_threshold());
    prepare_tile();
    Bounds::load_queries(smem_.dynamic + Shape::kQueryOffset, first_row(),
                         args_.predict.estimate_q_values +
                             (query_head(args_, tile_.b, tile_.h) * args_.predict.q_padded + q()) *
                                 Config::kHeadDim);
    fence_proxy_async();
    team_barrier().sync();
    const auto queries = Shape::QueryPanel::along_rows(uniform_over_warp(
        smem_.queries() + static_cast<u32>(warp_ / 4 * kWarpgroupRows * Config::kHeadDim)));
    Ring at;
    int step = find_step(at), buffer = 0;
    while (step >= 0) {
      const int word = word_of(step);
      step = take_word(queries, look, at, step, buffer);
      team_barrier().sync();
      decide(word, buffer);
      __syncwarp();
      buffer ^= 1;
    }
  }

 private:
  __device__ __forceinline__ static int word_of(int step) { return step / Shape::kStepsOfWord; }

  /// The first step from slot `at` on that the team sees; less than 0 if there is none. Slots of
  /// other steps are released.
  __device__ __forceinline__ int find_step(Ring& at) const {
    while (true) {
      smem_.await(at);
      const auto message = smem_.control().messages[at.slot()];
      if (message.step < 0 || (message.teams >> team() & 1) != 0) return message.step;
      smem_.release(at);
      at.advance();
    }
  }

  /// Takes the steps of one word of bits, from `step` on. Returns the first step of the next word.
  __device__ __forceinline__ int take_word(const OperandDescriptor& queries, const Look& look,
                                           Ring& at, int step, int buffer) const {
    auto& control = smem_.control();
    const int word = word_of(step);
    typename Bounds::Sums sums;
    bool fit = false;
    const auto tell = [&](int half) {
      const auto closely = [&] {
        return Bounds::find_closely(sums, look.rows(), control, at.slot(), half);
      };
      if (half == 0) fit = look.fits(control, at.slot());
      if constexpr (Shape::kHasCoarseBound) {
        const auto numbers = Look::read_numbers(control, at.slot(), half);
        wgmma_wait<0>();
        fence_accumulator(sums);
        return look.tell(sums, numbers, fit, closely);
      } else {
        wgmma_wait<0>();
        fence_accumulator(sums);
        return Look::tell(closely(), fit);
      }
    };
    Bounds::multiply(sums, queries, keys_, at.slot(), 0);
    while (true) {
      const int first = tell(0);
      Bounds::multiply(sums, queries, keys_, at.slot(), 1);
      publish(first, step, 0, buffer);
      Ring next = at;
      next.advance();
      const int next_step = find_step(next);
      const int second = tell(1);
      smem_.release(at);
      at = next;
      if (next_step < 0 || word_of(next_step) != word) {
        publish(second, step, 1, buffer);
        return next_step;
      }
      Bounds::multiply(sums, queries, keys_, at.slot(), 0);
      publish(second, step, 1, buffer);
      step = next_step;
    }
  }

  /// Writes the warp's bound of the tiles in half a step.
  __device__ __forceinline__ void publish(int bound, int step, int half, int buffer) const {
    const int of_word = step & (Shape::kStepsOfWord - 1);
    const int place = of_word * Shape::kTiles + half * Shape::kHalfTiles;
    int* const bounds = &smem_.control().bounds[buffer][0][0][place];
    if (lane_index() < Look::kLanes) bounds[own_bound_] = bound;
    __syncwarp();
  }

  __device__ __forceinline__ Rows rows_of_lane() const {
    const float* const offset = smem_.control().offset + first_row() + lane_index() / 4;
    return {args_, tile_, q() + lane_index() / 4, {offset[0], offset[8]}};
  }
  __device__ __forceinline__ TokenPairThreshold find_own_threshold() const {
    if constexpr (Shape::kHasCoarseBound) {
      if (tile_exists()) return find_threshold<Config, Hooks>(args_, tile_);
    }
    return {kInfinity, kInfinity};
  }

  /// Counts the visible tiles of the row and clears its bits.
  __device__ __forceinline__ void prepare_tile() const {
    constexpr int kThreads = Shape::kTeamWarps * 32;
    if (!tile_exists()) return;
    const int thread = thread_index() % kThreads;
    int visible = 0;
    for (int j = thread; j < args_.predict.keep_k_tiles; j += kThreads)
      visible += sees_tile<Config, Hooks>(args_, tile_, j);
    if (visible > 0) atomicAdd(&smem_.control().visible[team()], visible);
    unsigned* const kept = kept_words<Config>(args_, tile_);
    for (int word = thread; word < args_.predict.keep_words; word += kThreads) kept[word] = 0;
  }

  /// By one warp of the team; the warps alternate.
  __device__ __forceinline__ void decide(int word, int buffer) const {
    if (((warp_ - word) & (Shape::kTeamWarps - 1)) != 0) return;
    TokenPairDecision<Config, Hooks, Args>(args_, smem_, tile_, team()).decide(word, buffer);
  }

  __device__ __forceinline__ bool tile_exists() const {
    return tile_.i < args_.predict.keep_q_tiles;
  }
  __device__ __forceinline__ int team() const { return warp_ / Shape::kTeamWarps; }
  __device__ __forceinline__ NamedBarrier team_barrier() const {
    return {1 + team(), Shape::kTeamWarps * 32};
  }
  /// The first of the warp's 16 queries, counted in the block.
  __device__ __forceinline__ int first_row() const { return warp_ * kWarpRows; }
  __device__ __forceinline__ int q() const {
    return tile_.q0 + warp_ % Shape::kTeamWarps * kWarpRows;
  }

  const Args& args_;
  const Smem smem_;
  const int warp_;
  const KeepRow tile_;            ///< the team's queries
  const OperandDescriptor keys_;  ///< of the ring's first slot
  int own_bound_;                 ///< the lane's place in a buffer of bounds
};

/// Initialises the barriers, and loads each row's mass; by all threads.
template <class Config, class Args>
__device__ __forceinline__ void prepare_pairs(const Args& args, const TokenPairSmem<Config>& smem,
                                              const KeepRow& block) {
  using Shape = TokenPairShape<Config>;
  auto& control = smem.control();
  const int n = thread_index();
  if (n < Shape::kStages) smem.init_slot(n);
  if (n < Shape::kTeams) control.visible[n] = 0;
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
  extern __shared__ __align__(1024) unsigned char token_pair_smem[];
  using Shape = TokenPairShape<Config>;
  const TokenPairSmem<Config> smem{token_pair_smem};
  if (!has_rows<Config, Shape>(args)) return;
  const KeepRow block = rows_of_block<Config, Shape>(args);
  prepare_pairs<Config>(args, smem, block);
  if (warp_index() < Shape::kWarps) {
    grow_registers<Shape::kConsumerRegisters>();
    TokenPairConsumer<Config, Hooks, Args>(args, smem, block).run();
  } else {
    shrink_registers<Shape::kProducerRegisters>();
    TokenPairProducer<Config, Hooks, Args>(args, smem, block).run();
  }
}

}  // namespace lacuna
