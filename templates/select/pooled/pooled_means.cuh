// select/pooled/pooled.cuh for rows of up to 512 tiles of means: a product of matrices in f32, and
// rows that warps decide by themselves.
//
// A block takes kRows neighbouring query tiles of a head. Its warps share out the columns, 32 at a
// time, a lane 4 x 4 logits; then each takes rows. Under a causal mask late rows are the longest:
// they come first.
#pragma once

#include "arch/approx.cuh"
#include "base/kinds.cuh"
#include "select/keep/decide_row.cuh"
#include "select/pooled/pooled_vectors.cuh"
#include "select/pooled/row_scores.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class PooledMeans {
  using Vectors = PooledVectors<Config>;
  static constexpr int kLength = Vectors::kLength;
  static constexpr int kRows = kMeanRows, kColumns = kMeanColumns;  ///< of a warp's product
  static constexpr int kDepth = kMeanDepth;  ///< of which this much is in shared memory
  static constexpr int kLaneRows = 4, kLaneColumns = 4;
  static constexpr int kWarps = Config::kThreads / 32;
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  static constexpr bool kIsNormal = Config::kNormalise == Normalise::kSoftmax || kIsRowMax;
  static_assert(kLength % kDepth == 0);

  /// Strides of 4 (8) banks more than a multiple of 32: neighbouring rows do not meet.
  struct WarpSmem {
    union {
      float keys[kColumns][kDepth + kMeanPad];
      struct {
        WarpDecisionSmem<Config> decision;
        float p[Config::kUsesScore ? kMostWarpTiles : 1];
      } row;
    };
  };
  struct Smem {
    float queries[kRows][kLength + kMeanPad];
    float logits[kRows][kMostWarpTiles + kMeanLogitPad];
    WarpSmem warps[kWarps];
  };
  static_assert(sizeof(Smem) <= pooled_means_smem_bytes(kWarps, kLength, Config::kUsesScore) &&
                sizeof(Smem) <= Config::kSmemBytes);

 public:
  __device__ __forceinline__ static bool takes(const Args& args) {
    return args.predict.keep_k_tiles <= kMostWarpTiles;
  }

  __device__ __forceinline__ PooledMeans(const Args& args, unsigned char* smem)
      : args_(args),
        smem_(*reinterpret_cast<Smem*>(smem)),
        tiles_(args.predict.keep_k_tiles),
        warp_(warp_index()) {}

  __device__ __forceinline__ void run() {
    const int heads = args_.attend.n_b * args_.attend.n_h;
    const int groups_of_head = ceil_div(args_.predict.keep_q_tiles, kRows);
    for (int number = block_index(); number < heads * groups_of_head; number += kMostBlocks) {
      const int head = number % heads;
      b_ = head / args_.attend.n_h;
      h_ = head - b_ * args_.attend.n_h;
      first_ = (groups_of_head - 1 - number / heads) * kRows;
      rows_ = smaller(kRows, args_.predict.keep_q_tiles - first_);
      if (has_few_rows<Config>(args_)) {
        read_scores();
      } else {
        load_queries(head);
        __syncthreads();
        for (int column = warp_ * kColumns; column < tiles_; column += kWarps * kColumns) {
          if (sees_columns(column)) multiply(column);
        }
      }
      __syncthreads();
      for (int r = warp_; r < rows_; r += kWarps) decide_row(r);
      __syncthreads();
    }
  }

 private:
  __device__ __forceinline__ void load_queries(int head) {
    constexpr int kQuads = kLength / 4;
    const long long first = static_cast<long long>(head) * args_.predict.keep_q_tiles + first_;
    const float* const summaries = args_.predict.q_summary + first * Config::kHeadDim;
    for (int n = thread_index(); n < kRows * kQuads; n += Config::kThreads) {
      const int r = n / kQuads, column = n % kQuads * 4;
      float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
      if (r < rows_)
        x = Vectors::template row_elements<float4>(summaries + r * Config::kHeadDim, column);
      *reinterpret_cast<float4*>(smem_.queries[r] + column) = x;
    }
  }

  /// Of few rows the kernel that summarises keys has made them.
  __device__ __forceinline__ void read_scores() const {
    for (int r = 0; r < rows_; ++r) {
      const float* const scores = row_scores_of(args_, b_, h_, first_ + r);
      for (int j = thread_index(); j < tiles_; j += Config::kThreads)
        smem_.logits[r][j] = scores[j];
    }
  }

  /// Does any row see any of the columns from `first` on?
  __device__ __forceinline__ bool sees_columns(int first) const {
    KeepRow all = keep_row_of<Config>(args_, b_, h_, first_);
    all.q1 = keep_row_of<Config>(args_, b_, h_, first_ + rows_ - 1).q1;
    const int last = smaller(first + kColumns, tiles_) - 1;
    return sees_keys<Config, Hooks>(args_, all, first * Config::kTileK,
                                    last_key<Config>(args_, last));
  }

  // the product

  /// A lane loads 4 keys' quarters; keys past the last one stand for it.
  __device__ __forceinline__ void load_keys(float4 (&keys)[4], const float* summaries, int first,
                                            int depth) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int key = smaller(first + lane_index() / 4 + 8 * n, tiles_ - 1);
      keys[n] = *reinterpret_cast<const float4*>(summaries + key * kLength + depth +
                                                 lane_index() % 4 * 4);
    }
  }

  __device__ __forceinline__ void multiply(int first) {
    auto& keys = smem_.warps[warp_].keys;
    const float* const summaries = Vectors::columns(args_, b_, h_);
    const int row = lane_index() / 8, column = lane_index() % 8;  // the first of this lane
    float sums[kLaneRows][kLaneColumns] = {};
    float4 next[4];
    load_keys(next, summaries, first, 0);
#pragma unroll 1
    for (int depth = 0; depth < kLength; depth += kDepth) {
      __syncwarp();
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        *reinterpret_cast<float4*>(keys[lane_index() / 4 + 8 * n] + lane_index() % 4 * 4) = next[n];
      }
      __syncwarp();
      if (depth + kDepth < kLength) load_keys(next, summaries, first, depth + kDepth);
#pragma unroll 1
      for (int d = 0; d < kDepth; d += 4) {
        float4 q[kLaneRows], k[kLaneColumns];
#pragma unroll
        for (int n = 0; n < kLaneRows; ++n) {
          q[n] = *reinterpret_cast<const float4*>(smem_.queries[row + 4 * n] + depth + d);
        }
#pragma unroll
        for (int n = 0; n < kLaneColumns; ++n) {
          k[n] = *reinterpret_cast<const float4*>(keys[column + 8 * n] + d);
        }
#pragma unroll
        for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
          for (int c = 0; c < kLaneColumns; ++c) {
            float& sum = sums[r][c];
            sum = fmaf(q[r].x, k[c].x, sum), sum = fmaf(q[r].y, k[c].y, sum);
            sum = fmaf(q[r].z, k[c].z, sum), sum = fmaf(q[r].w, k[c].w, sum);
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        smem_.logits[row + 4 * r][first + column + 8 * c] =
            sums[r][c] * args_.attend.scale * Config::kTemperature;
      }
    }
  }

  // a row, by a warp

  __device__ __forceinline__ void decide_row(int r) {
    auto& own = smem_.warps[warp_].row;
    float* const logits = smem_.logits[r];
    const KeepRow row = keep_row_of<Config>(args_, b_, h_, first_ + r);
    WarpRow tiles;
    float largest = -kInfinity;
    for (int first = 0; first < tiles_; first += 32) {
      const int j = first + lane_index();
      const bool sees = j < tiles_ && sees_tile<Config, Hooks>(args_, row, j);
      tiles.add(first, sees, tiles_);
      const bool weighs = sees && !excludes_tile<Config, Hooks>(args_, row, j);
      if (!weighs && j < tiles_) logits[j] = -kInfinity;
      if (weighs) largest = fmaxf(largest, logits[j]);
    }
    __syncwarp();
    tiles.reach = __shfl_sync(kAllLanes, tiles.reach, 0);  // known to be the same in all lanes
    float* const p = kIsNormal && Config::kUsesScore ? own.p : logits;
    if constexpr (kIsNormal) normalise(logits, tiles.reach, WarpTeam().max(largest), p);
    decide_row_by_warp<Config, Hooks>(args_, row, tiles, p, logits, own.decision);
  }

  __device__ __forceinline__ static void normalise(const float* logits, int count, float largest,
                                                   float* p) {
    if (largest == -kInfinity) largest = 0.0f;  // nothing is visible: every p is 0
    float sum = 0.0f;
    for (int j = lane_index(); j < count; j += 32) {
      const float weight = exp2_approx((logits[j] - largest) * kLog2E);
      sum += weight;
      p[j] = weight;
    }
    sum = WarpTeam().sum(sum);
    const float share = sum > 0.0f ? (kIsRowMax ? 1.0f : 1.0f / sum) : sum;
    for (int j = lane_index(); j < count; j += 32) p[j] *= share;
    __syncwarp();
  }

  const Args& args_;
  Smem& smem_;
  const int tiles_, warp_;
  int b_ = 0, h_ = 0;
  int first_ = 0, rows_ = 0;  ///< query tiles of the group
};

}  // namespace lacuna
