// `estimate` of pairs of tokens in integers, relative to the softmax of their row over the tiles
// that take part (all that the mask shows, or those that the step before kept), by wgmma (sm_90a);
// then `select`.
//
// A block takes one query tile and walks along its keys once. Of each step it stores the largest
// logit of each row; when the row's sum is known, one thread decides a tile from those.
//
//   predict.scores  [block][step of the row][query of the tile]: these largest logits, in log2
//
// select/tokens/tokens.cuh computes the same for other targets, and walks twice.
#pragma once

#include "arch/copy/tma.cuh"
#include "arch/multiply/wgmma_8bit.cuh"
#include "select/keep/select.cuh"
#include "select/token_softmax/token_softmax_copies.cuh"
#include "select/token_softmax/token_softmax_rows.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TokenSoftmaxBlock {
  using Shape = TokenSoftmaxShape<Config>;
  using Rows = TokenSoftmaxRows<Config, Hooks, Args>;
  using Walk = TokenSoftmaxWalk<Config, Hooks, Args>;
  using Sums = typename Rows::Sums;
  using Scales = typename Rows::Scales;
  using Copies = TokenSoftmaxCopies<Config>;

 public:
  __device__ __forceinline__ TokenSoftmaxBlock(const Args& args, unsigned char* smem)
      : args_(args),
        smem_(smem),
        control_(*reinterpret_cast<typename Shape::Control*>(smem + Shape::kControlOffset)),
        queries_(Shape::QueryPanel::along_rows(uniform_over_warp(
            shared_address(smem) +
            static_cast<u32>(warp_index() / 4 * kWarpgroupRows * Config::kHeadDim)))),
        keys_(Shape::KeyPanel::along_rows(
            uniform_over_warp(shared_address(smem) + static_cast<u32>(Shape::kKeyOffset)))) {
    const long long steps_of_row =
        static_cast<long long>(args.predict.keep_k_tiles) * Shape::kStepsOfTile;
    largest_ = args.predict.scores + block_index() * steps_of_row * Config::kTileQ;
  }

  __device__ __forceinline__ void run() {
    const int rows = args_.attend.n_b * args_.attend.n_h * args_.predict.keep_q_tiles;
#pragma unroll 1
    for (int number = block_index(); number < rows; number += kMostBlocks) {
      const KeepRow row = locate(number);
      estimate(row);
      decide(row);
      __syncthreads();
    }
  }

 private:
  /// Rows are numbered from the last query tile on, because under a causal mask those are the
  /// longest, and all heads of a query tile follow one another. A block takes every kMostBlocks-th
  /// row; heads are rotated, so that it does not take the same head each time.
  __device__ __forceinline__ KeepRow locate(int number) const {
    const int heads = args_.attend.n_b * args_.attend.n_h;
    const int from_end = number / heads;
    const int head = (number - from_end * heads + from_end + from_end / 16) % heads;
    const int b = head / args_.attend.n_h;
    return keep_row_of<Config>(args_, b, head - b * args_.attend.n_h,
                               args_.predict.keep_q_tiles - 1 - from_end);
  }

  __device__ __forceinline__ void estimate(const KeepRow& row) const {
    Rows rows(args_, row);
    Walk walk(args_, row);
    int key = walk.next(), next_key = key < 0 ? -1 : walk.next();
    Scales scales, next_scales;
    const Copies copies(args_, row, smem_);
    copies.load_queries(args_, row, smem_);
    begin_step(copies, rows, key, 0, scales);
    begin_step(copies, rows, next_key, 1, next_scales);
    // Stored behind the fence of the next step: ahead of it, the fence would wait for the store.
    float2 largest = {0.0f, 0.0f};
    int count = 0, slot = 0;
#pragma unroll 1
    for (; key >= 0; ++count) {
      cp_async_wait<1>();
      fence_proxy_async();
      __syncthreads();
      Sums sums;
      multiply(sums, slot);
      if (count > 0) store(rows, largest, count - 1);
      const Scales own = scales;
      const int after = next_key < 0 ? -1 : walk.next();
      scales = next_scales;
      begin_step(copies, rows, after, slot == 0 ? Shape::kStages - 1 : slot - 1, next_scales);
      wgmma_wait<0>();
      fence_accumulator(sums);
      largest = rows.take(sums, own, control_.bias[slot], key);
      key = next_key;
      next_key = after;
      slot = slot == Shape::kStages - 1 ? 0 : slot + 1;
    }
    if (count > 0) store(rows, largest, count - 1);
    cp_async_wait<0>();  // a row without a step has still asked for its queries
    rows.publish(control_);
    __syncthreads();
  }

  /// Issues the copies of the step that begins at `key`, as one group. Less than 0: there is no
  /// such step, and the group is empty.
  __device__ __forceinline__ static void begin_step(const Copies& copies, const Rows& rows, int key,
                                                    int slot, Scales& scales) {
    if (key >= 0) {
      copies.load(key, slot);
      scales = rows.read_scales(key);
    }
    cp_async_commit();
  }

  /// The largest logits of a step by row.
  __device__ __forceinline__ void store(const Rows& rows, const float2& largest, int count) const {
    if (lane_index() % 4 != 0) return;
    float* const of_step = largest_ + static_cast<long long>(count) * Config::kTileQ;
    of_step[rows.in_tile(0)] = largest.x;
    of_step[rows.in_tile(1)] = largest.y;
  }

  /// Issues the product of the warpgroup's queries with the keys in a slot.
  __device__ __forceinline__ void multiply(Sums& sums, int slot) const {
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < Config::kHeadDim / 32; ++step)
      wgmma_from_smem_s8(
          sums, queries_.at(Shape::QueryPanel::along_step(step)),
          keys_.at(slot * Shape::KeyPanel::kBytes + Shape::KeyPanel::along_step(step)), step != 0);
    wgmma_commit();
  }

  /// A warp decides 32 tiles, a word of the kept bits, a lane one of them.
  __device__ __forceinline__ void decide(const KeepRow& row) const {
    const int visible =
        count_visible<Config, Hooks>(args_, row, BlockTeam<Shape::kThreads>(control_.reduce));
    unsigned* const kept = kept_words<Config>(args_, row);
    int before = 0;  // tiles of the row that took part
#pragma unroll 1
    for (int word = 0; word < args_.predict.keep_words; ++word) {
      const u32 seen = seen_tiles<Config, Hooks>(args_, row, word);
      if (word % Shape::kWarps == warp_index()) {
        const u32 own = 1u << lane_index();
        bool keep = false;
        if ((seen & own) != 0) {
          TileValue value;
          value.p = find_largest(before + __popc(seen & (own - 1)));
          keep = keeps_tile<Config, Hooks>(args_, row, word * 32 + lane_index(), value, visible);
        }
        const u32 bits = __ballot_sync(kAllLanes, keep);
        if (lane_index() == 0) kept[word] = bits;
      }
      before += __popc(seen);
    }
  }

  /// The largest weight of the row's tile of that number.
  __device__ __forceinline__ float find_largest(int number) const {
    const float* const of_tile =
        largest_ + static_cast<long long>(number) * (Shape::kStepsOfTile * Config::kTileQ);
    float largest = -kInfinity;
#pragma unroll 1
    for (int step = 0; step < Shape::kStepsOfTile; ++step) {
#pragma unroll 8
      for (int r = 0; r < Config::kTileQ; r += 4) {
        const float4 x = *reinterpret_cast<const float4*>(of_tile + step * Config::kTileQ + r);
        const float4 sum = *reinterpret_cast<const float4*>(&control_.log2_sum[r]);
        largest =
            fmaxf(largest, fmaxf(fmaxf(x.x - sum.x, x.y - sum.y), fmaxf(x.z - sum.z, x.w - sum.w)));
      }
    }
    return exp2_approx(largest);
  }

  const Args& args_;
  unsigned char* const smem_;
  typename Shape::Control& control_;
  const OperandDescriptor queries_;  ///< of the warpgroup
  const OperandDescriptor keys_;     ///< of the ring's first slot
  float* largest_;                   ///< of the block
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_token_softmax(const Args& args) {
  extern __shared__ __align__(1024) unsigned char token_softmax_smem[];
  TokenSoftmaxBlock<Config, Hooks, Args>(args, token_softmax_smem).run();
}

}  // namespace lacuna
