// Decisions of predict_token_pairs: one warp decides 32 tiles of a row from the bounds of their
// weights. Where `keep` says the same of both bounds, and it changes its mind only once as p grows
// (the planner sees to that), that is the answer; else the tile is computed exactly, as
// select/tokens/tokens.cuh would.
#pragma once

#include "arch/approx.cuh"
#include "arch/redux.cuh"
#include "select/token_pairs/bounds.cuh"
#include "select/tokens/token_logits.cuh"

namespace lacuna {

/// A warp of TokenLogits takes 16 rows and 32 columns.
template <class Config>
struct TokenPairTileConfig : Config {
  static constexpr int kSplits = (Config::kTileK > 64 ? Config::kTileK : 64) / 32;
  static constexpr int kThreads = 32 * kSplits * (Config::kTileQ / 16);
  static constexpr int kSmemBytes = 1 << 20;  // of which it uses none
};

template <class Config, class Hooks, class Args>
class TokenPairDecision {
  using Shape = TokenPairShape<Config>;
  using TileConfig = TokenPairTileConfig<Config>;
  using TileShape = TokenShape<TileConfig>;
  using Logits = TokenLogits<TileShape, TileConfig, Hooks, Args, Config::kBits, false>;
  static_assert(TileShape::kBlocks == 4);

 public:
  /// `row`: of tiles, which `team` has.
  __device__ __forceinline__ TokenPairDecision(const Args& args, const TokenPairSmem<Config>& smem,
                                               const KeepRow& row, int team)
      : args_(args), control_(smem.control()), row_(row), team_(team) {}

  /// By a whole warp, once all bounds are in `buffer`.
  __device__ __forceinline__ void decide(int word, int buffer) const {
    const int j = word * 32 + lane_index();
    const bool visible = j < args_.predict.keep_k_tiles && sees_tile<Config, Hooks>(args_, row_, j);
    const float above = read_bound(Shape::kAbove, buffer);
    const float below = visible && is_full(j) ? read_bound(Shape::kBelow, buffer) : 0.0f;
    bool keep = visible && keeps(j, above);
    const bool is_known = above == above && below == below;
    const bool is_open = visible && !(is_known && keep == keeps(j, below));
    u32 unknown = __ballot_sync(kAllLanes, is_open);
    while (unknown != 0) {
      const int lane = __ffs(static_cast<int>(unknown)) - 1;
      const float p = exp2_approx(find_largest(word * 32 + lane));
      if (lane_index() == lane) keep = keeps(j, p);
      unknown &= unknown - 1;
    }
    const u32 bits = __ballot_sync(kAllLanes, keep);
    if (lane_index() == 0) kept_words<Config>(args_, row_)[word] = bits;
  }

 private:
  __device__ __forceinline__ bool keeps(int j, float p) const {
    TileValue value;
    value.p = p;
    return keeps_tile<Config, Hooks>(args_, row_, j, value, control_.visible[team_]);
  }

  /// The lane's tile's.
  __device__ __forceinline__ float read_bound(typename Shape::Bound bound, int buffer) const {
    const auto& bounds = control_.bounds[buffer][bound];
    int largest = 0;
#pragma unroll
    for (int rows = 0; rows < Shape::kTeamWarps; ++rows)
      largest = larger(largest, bounds[team_ * Shape::kTeamWarps + rows][lane_index()]);
    return exp2_approx(__int_as_float(largest) - kRaised);
  }

  /// Is each pair of the tile's tokens visible? Else its bound is one of more than those.
  __device__ __forceinline__ bool is_full(int j) const {
    const int k0 = j * Config::kTileK, k1 = k0 + Config::kTileK - 1;
    if (k1 >= args_.attend.n_k) return false;
    if constexpr (!Config::kHasMask) return true;
    return Hooks::tile_full(args_, row_.q0, row_.q1, k0, k1, row_.h, row_.b);
  }

  /// The largest weight of a tile, exactly, in log2.
  __device__ __forceinline__ float find_largest(int j) const {
    const Logits logits(args_, row_);
    const float* const offset = control_.offset + team_ * Config::kTileQ;
    float largest = -kInfinity;
#pragma unroll 1
    for (int set = 0; set < Config::kTileQ / 16; ++set) {
#pragma unroll 1
      for (int k = j * Config::kTileK; k < (j + 1) * Config::kTileK; k += 32) {
        typename Logits::Sums sums;
        multiply(sums, row_.q0 + set * 16, k);
        float scores[4][4];
        logits.scale(scores, sums, set, k);
        logits.hide(scores, set, k, nullptr, 0);
        const int row = set * 16 + lane_index() / 4;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            largest = fmaxf(largest, fmaf(scores[n][i], kLog2E, -offset[row + i / 2 * 8]));
        }
      }
    }
    return max_over_lanes(largest);
  }

  /// 16 queries by 32 keys, from global memory.
  __device__ __forceinline__ void multiply(int (&sums)[4][4], int q, int k) const {
    const PredictArgs& predict = args_.predict;
    const int lane_row = lane_index() / 4, lane_byte = lane_index() % 4 * 4;
    const signed char* const queries =
        predict.estimate_q_values +
        (query_head(args_, row_.b, row_.h) * predict.q_padded + q + lane_row) * Config::kHeadDim +
        lane_byte;
    const signed char* const keys =
        predict.estimate_k_values +
        (key_head(args_, row_.b, row_.h) * predict.k_padded + k + lane_row) * Config::kHeadDim +
        lane_byte;
    const auto word = [](const signed char* bytes) { return *reinterpret_cast<const u32*>(bytes); };
    clear(sums);
#pragma unroll 1
    for (int byte = 0; byte < Config::kHeadDim; byte += 32) {
      u32 a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = word(queries + byte + i % 2 * 8 * Config::kHeadDim + i / 2 * 16);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const signed char* const block = keys + byte + n * 8 * Config::kHeadDim;
        multiply_add<typename Config::Element>(sums[n], a, word(block), word(block + 16));
      }
    }
  }

  const Args& args_;
  const typename Shape::Control& control_;
  const KeepRow& row_;
  const int team_;
};

}  // namespace lacuna
