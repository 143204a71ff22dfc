// `estimate` of all pairs of tokens as they are, reduced to the largest weight of each key or of a
// few neighbours, by wgmma (sm_90a); then `select`. The mass that weights are relative to is there
// already (select/exact/exact_sums.cuh, or the caller's). Each key is decided as soon as it is
// reduced: nothing but bits is stored.
#pragma once

#include "arch/approx.cuh"
#include "select/exact/exact_producer.cuh"

namespace lacuna {

/// A warpgroup: half of the keys of each step, and 128 queries.
template <class Config, class Hooks, class Args>
class ExactLargest {
  using Warp = ExactWarp<Config, Args>;
  using Shape = typename Warp::Shape;
  using Products = typename Warp::Products;
  using Ring = typename Warp::Ring;
  static constexpr int kHalves = Shape::kStepKeys / kWarpgroupRows;
  static constexpr int kTiles = Shape::kColumns / Config::kTileQ;  ///< query tiles of a product
  static constexpr int kBlocksOfTile = Shape::kBlocks / kTiles;
  static_assert(Shape::kColumns % Config::kTileQ == 0 && Config::kTileQ % kWarpgroupRows == 0);
  static_assert(kWarpRows % Config::kTileK == 0, "a warp has whole tiles of keys");
  static_assert(Config::kNormalise != Normalise::kNone, "weights are relative to a mass");

 public:
  using Pairs = ExactPairs<Config, Hooks, Args, false>;

  __device__ __forceinline__ ExactLargest(const Args& args, const ExactSmem<Config>& smem,
                                          const KeepRow& block)
      : warp_(args, smem, block),
        part_(warp_.number / 4 / kHalves),
        to_log2_(args.attend.scale * (Config::kTemperature * kLog2E)) {}

  __device__ __forceinline__ void run() const {
    publish_offset();
    if constexpr (Config::kHasMask || Config::kTileK > 1) prepare_tile();
    warp_.load_queries();
    typename Hooks::KeepParts parts[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      // Tiles beyond the head's last decide about nothing; parameters end with it.
      const int i = smaller(keep_row(t).i, warp_.args.predict.keep_q_tiles - 1);
      parts[t] = keep_parts<Hooks>(
          warp_.args, keep_row_of<Config>(warp_.args, warp_.block.b, warp_.block.h, i));
    }
    using Rows = typename Shape::KeyPanels;
    using Columns = typename Shape::QueryPanels;
    const auto queries = Columns::along_rows(uniform_over_warp(
        warp_.smem.queries() + static_cast<u32>(part_ * Shape::kColumns * kPanelRowBytes)));
    const int first_key = warp_.number / 4 % kHalves * kWarpgroupRows;
    const u32 first = static_cast<u32>(first_key * kPanelRowBytes);
    Ring at;
    for (int step = warp_.wait(at); step >= 0; step = warp_.wait(at)) {
      Products scores;
      Warp::template multiply<Rows, Columns>(
          scores, Rows::along_rows(uniform_over_warp(warp_.smem.keys(at.slot()) + first)), queries);
      warp_.release(at);
      at.advance();
      const int k0 = step * Shape::kStepKeys + first_key;
      hide(scores, k0);
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
        decide(scores, t, parts[t], k0 + warp_.number % 4 * kWarpRows);
    }
  }

 private:
  /// What the logits of each query are reduced by, in log2: +inf for those that take no part.
  __device__ __forceinline__ void publish_offset() const {
    const int n = thread_index(), q = warp_.block.q0 + n;
    if (n >= Shape::kRows) return;
    float offset = kInfinity;
    if (q <= warp_.block.q1) {
      if constexpr (Config::kNormalise == Normalise::kPreviousLse) {
        const LseArg& lse = warp_.args.predict.previous_lse;
        const float given =
            lse.data[warp_.block.b * lse.stride_b + warp_.block.h * lse.stride_h + q] * kLog2E;
        if (given > -kInfinity) offset = given;
      } else {
        offset = warp_.args.predict.scores[query_head(warp_.args, warp_.block.b, warp_.block.h) *
                                               warp_.args.predict.q_padded +
                                           q];
      }
    }
    const int column = n % Shape::kColumns;
    warp_.smem.control().offset[n / Shape::kColumns][column % 8 / 2][column / 8 * 2 + column % 2] =
        offset;
  }

  /// How many tiles of keys a tile sees, and nothing kept: not all steps are visited, or a word has
  /// bits of several.
  __device__ __forceinline__ void prepare_tile() const {
    constexpr int kThreads = Shape::kThreads / (Shape::kRows / Config::kTileQ);
    const int tile = thread_index() / kThreads, thread = thread_index() % kThreads;
    const KeepRow row =
        keep_row_of<Config>(warp_.args, warp_.block.b, warp_.block.h, warp_.block.i + tile);
    if (row.i >= warp_.args.predict.keep_q_tiles) return;
    int visible = 0;
#pragma unroll 1
    for (int j = thread; j < warp_.args.predict.keep_k_tiles; j += kThreads)
      visible += sees_tile<Config, Hooks>(warp_.args, row, j);
    if (visible > 0) atomicAdd(&warp_.smem.control().visible[tile], visible);
    unsigned* const kept = kept_words<Config>(warp_.args, row);
#pragma unroll 1
    for (int word = thread; word < warp_.args.predict.keep_words; word += kThreads) kept[word] = 0;
  }

  __device__ __forceinline__ KeepRow keep_row(int tile) const {
    return keep_row_of<Config>(warp_.args, warp_.block.b, warp_.block.h,
                               warp_.block.i + part_ * kTiles + tile);
  }

  /// NaN, which is never the largest, for pairs that the mask leaves out.
  __device__ __forceinline__ void hide(Products& scores, int k0) const {
    if constexpr (!Config::kHasMask) return;
    const Pairs pairs{warp_.args};
    KeepRow row = warp_.block;
    row.q0 += part_ * Shape::kColumns;
    row.q1 = smaller(row.q0 + Shape::kColumns - 1, warp_.block.q1);
    const int k1 = smaller(k0 + kWarpgroupRows, warp_.args.attend.n_k) - 1;
    if (row.q0 > row.q1 || k0 > k1 || pairs.all(row, k0, k1)) return;
    const auto mask_parts = prepare_mask<Hooks>(warp_.args, row.h, row.b);
    const int k = k0 + warp_.number % 4 * kWarpRows + lane_index() / 4;
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int q = row.q0 + n * 8 + lane_index() % 4 * 2 + i % 2;
        if (!pairs.one(mask_parts, row, q, k + i / 2 * 8))
          scores[n][i] = __int_as_float(0x7fffffff);
      }
    }
  }

  /// The warp's 16 keys, from `k0` on, and tile `tile` of the product.
  __device__ __forceinline__ void decide(const Products& scores, int tile,
                                         const typename Hooks::KeepParts& parts, int k0) const {
    float largest[2];
    find_largest(largest, scores, tile);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(kAllLanes, largest[r], 1));
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(kAllLanes, largest[r], 2));
    }
    const KeepRow row = keep_row(tile);
    const int keys = warp_.args.predict.keep_words * (32 * Config::kTileK);  // that have a bit
    if (row.i >= warp_.args.predict.keep_q_tiles || k0 >= keys) return;
    // A lane takes one key: the first 16 lanes those of the warp.
    const int lane = lane_index();
    const float low = __shfl_sync(kAllLanes, largest[0], lane % 8 * 4);
    const float high = __shfl_sync(kAllLanes, largest[1], lane % 8 * 4);
    const int k = k0 + lane % kWarpRows, j = k / Config::kTileK;
    float mine = lane % kWarpRows < 8 ? low : high;
    if (k >= warp_.args.attend.n_k) mine = -kInfinity;
#pragma unroll
    for (int keys = 1; keys < Config::kTileK; keys *= 2)
      mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, keys));
    TileValue value;
    value.p = exp2_approx(mine);
    int visible = warp_.args.predict.keep_k_tiles;
    if constexpr (Config::kHasMask) visible = warp_.smem.control().visible[part_ * kTiles + tile];
    const bool is_first = lane < kWarpRows && k % Config::kTileK == 0 && k < warp_.args.attend.n_k;
    const bool keep = is_first && sees_tile<Config, Hooks>(warp_.args, row, j) &&
                      keeps_tile<Config, Hooks>(warp_.args, row, parts, j, value, visible);
    store(row, j, keep);
  }

  /// Of each key of a lane, in log2.
  __device__ __forceinline__ void find_largest(float (&largest)[2], const Products& scores,
                                               int tile) const {
    const auto* const offsets = reinterpret_cast<const float4*>(
        &warp_.smem.control().offset[part_][lane_index() % 4][tile * kBlocksOfTile * 2]);
    largest[0] = largest[1] = -kInfinity;
#pragma unroll
    for (int pair = 0; pair < kBlocksOfTile / 2; ++pair) {
      const float4 four = offsets[pair];
      const float of_query[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const auto& block = scores[tile * kBlocksOfTile + pair * 2 + n];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          largest[i / 2] =
              fmaxf(largest[i / 2], fmaf(block[i], to_log2_, -of_query[n * 2 + i % 2]));
        }
      }
    }
  }

  /// The bit of the lane's tile, if it has one.
  __device__ __forceinline__ void store(const KeepRow& row, int j, bool keep) const {
    unsigned* const kept = kept_words<Config>(warp_.args, row);
    if constexpr (Config::kTileK == 1) {
      const u32 bits = __ballot_sync(kAllLanes, keep);
      auto* const halves = reinterpret_cast<unsigned short*>(kept);
      if (lane_index() == 0) halves[j / kWarpRows] = static_cast<unsigned short>(bits);
    } else if (keep) {
      atomicOr(&kept[j / 32], 1u << j % 32);
    }
  }

  const Warp warp_;
  const int part_;  ///< which 128 queries of the block
  const float to_log2_;
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_exact_largest(const Args& args) {
  extern __shared__ __align__(1024) unsigned char exact_smem[];
  using Shape = ExactShape<Config>;
  const ExactSmem<Config> smem{exact_smem};
  if (!has_rows<Config, Shape>(args)) return;
  const KeepRow block = rows_of_block<Config, Shape>(args);
  prepare_exact(smem);
  if (warp_index() < Shape::kWarps) {
    grow_registers<Shape::kConsumerRegisters>();
    ExactLargest<Config, Hooks, Args>(args, smem, block).run();
  } else {
    shrink_registers<Shape::kProducerRegisters>();
    ExactProducer<Config, Args>(args, smem, block).run([&](int k0, int k1) {
      return sees_keys<Config, Hooks>(args, block, k0, k1);
    });
  }
}

}  // namespace lacuna
