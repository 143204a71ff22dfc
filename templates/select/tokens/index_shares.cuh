// Scores of a share of the keys by an index, for the few queries of a tile, by matrix products.
// Keys are the rows of the left operand: they are loaded from memory straight to registers. Vectors
// of queries, of eight index heads at a time, are the columns of the right operand, in shared
// memory. So a warp waits for nothing but its own keys, and each is read once for all queries that
// have room.
//
// Of 16 elements a lane has four neighbours, of keys and of queries alike, in the place of the two
// pairs that the instruction names: a sum of products does not ask for an order.
#pragma once

#include "arch/pack.cuh"
#include "base/mask_pair.cuh"
#include "select/tokens/index_keys.cuh"
#include "select/tokens/token_rows.cuh"
#include "select/tokens/token_shape.cuh"
#include "tile/warp_product.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class IndexShare {
  using Element = typename Config::Element;
  using Rows = RowTokens<row_stride<Config>()>;
  static constexpr int kThreads = Config::kThreads, kWarps = kThreads / 32;
  static constexpr int kHeads = Config::kIndexHeads, kGroups = ceil_div(kHeads, 8);
  static constexpr int kSteps = Config::kIndexDim / 16;
  static constexpr int kKeys = 16;  ///< of a warp at once
  static constexpr int kColumns = token_share_columns(Config::kTileK);
  static constexpr int kQueries = index_share_queries(Config::kRows, kHeads, Config::kIndexDim);
  static_assert(kColumns % kKeys == 0);

  struct Smem {
    uint2 vectors[kQueries][kGroups][kSteps][32];  ///< by lane
    float weights[kQueries][kGroups * 8];
    float scores[kColumns];
  };
  static_assert(sizeof(Smem) <= Config::kSmemBytes);
  using Raw = float4[kSteps][2];  ///< of the keys l / 4 and l / 4 + 8
  using Packed = u32[kSteps][4];

 public:
  __device__ __forceinline__ IndexShare(const Args& args, const KeepRow& row, int first, int end,
                                        unsigned char* smem)
      : args_(args),
        row_(row),
        first_(first),
        end_(end),
        smem_(*reinterpret_cast<Smem*>(smem)),
        first_row_(row.q0 / Rows::kRowStride),
        rows_(Rows::rows_of(row.q1 - row.q0 + 1)) {}

  /// Leaves p of the share's tiles.
  __device__ __forceinline__ void run() {
    const bool sees = sees_keys<Config, Hooks>(args_, row_, first_, end_ - 1);
    if constexpr (Config::kHasMask) {
      is_partial_ = !Hooks::tile_full(args_, row_.q0, row_.q1, first_, end_ - 1, row_.h, row_.b);
    }
    if (sees) {
      with_index_keys<Hooks>(args_, row_.b, [&](const auto& quad_of) { score_keys(quad_of); });
    }
    __syncthreads();
    float* const p = few_row_scores(args_, row_);
    for (int t = thread_index(); t < kColumns / Config::kTileK; t += kThreads) {
      const int j = first_ / Config::kTileK + t;
      if (j >= args_.predict.keep_k_tiles) break;
      p[j] = sees && !excludes_tile<Config, Hooks>(args_, row_, j) ? score_of_tile(t) : -kInfinity;
    }
  }

 private:
  template <class QuadOf>
  __device__ __forceinline__ void score_keys(const QuadOf& quad_of) {
    for (int query = 0; query < rows_; query += kQueries) {
      const int queries = smaller(kQueries, rows_ - query);
      Raw raw;
      load(raw, warp_index() * kKeys, quad_of);
      if (query > 0) __syncthreads();
      put_queries(query, queries);
      __syncthreads();
#pragma unroll 1
      for (int own = warp_index() * kKeys; own < kColumns; own += kWarps * kKeys) {
        Packed keys;
        round(keys, raw);
        if (own + kWarps * kKeys < kColumns) load(raw, own + kWarps * kKeys, quad_of);
        multiply(keys, own, query, queries);
      }
    }
  }

  template <class QuadOf>
  __device__ __forceinline__ void load(Raw& raw, int own, const QuadOf& quad_of) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int k = smaller(first_ + place_of(own, half), end_ - 1);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        raw[step][half] = quad_of(k, step * 16 + lane_index() % 4 * 4);
    }
  }

  __device__ __forceinline__ static void round(Packed& keys, const Raw& raw) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 x = raw[step][half];
        keys[step][half] = pack<Element>(x.x, x.y);
        keys[step][2 + half] = pack<Element>(x.z, x.w);
      }
    }
  }

  /// The vectors of `queries` from `first` on, and their weights; zeros stand for heads past the
  /// last.
  __device__ __forceinline__ void put_queries(int first, int queries) {
    constexpr int kPieces = kGroups * kSteps * 32;
#pragma unroll 1
    for (int n = thread_index(); n < queries * kPieces; n += kThreads) {
      const int query = n / kPieces, piece = n % kPieces, lane = piece % 32;
      const int step = piece / 32 % kSteps, group = piece / (32 * kSteps);
      const int head = group * 8 + lane / 4, q = token_of(first + query);
      const int d = step * 16 + lane % 4 * 4;
      uint2 pairs = {0, 0};
      if (head < kHeads) pairs = {pair_of(head, q, d), pair_of(head, q, d + 2)};
      smem_.vectors[query][group][step][lane] = pairs;
    }
    for (int n = thread_index(); n < queries * kGroups * 8; n += kThreads) {
      const int query = n / (kGroups * 8), head = n % (kGroups * 8);
      smem_.weights[query][head] =
          head < kHeads ? Hooks::index_weight(args_, head, token_of(first + query), row_.h, row_.b)
                        : 0.0f;
    }
  }

  __device__ __forceinline__ int token_of(int row) const {
    return smaller((first_row_ + row) * Rows::kRowStride, args_.attend.n_q - 1);
  }
  __device__ __forceinline__ u32 pair_of(int head, int q, int d) const {
    return pack<Element>(Hooks::index_q(args_, head, q, d, row_.h, row_.b),
                         Hooks::index_q(args_, head, q, d + 1, row_.h, row_.b));
  }

  /// The scores of the keys from `own` of the share on: the largest of the queries so far.
  __device__ __forceinline__ void multiply(const Packed& keys, int own, int first, int queries) {
    float largest[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      largest[half] = first > 0 ? smem_.scores[place_of(own, half)] : -kInfinity;
    const auto mask_parts = prepare_mask<Hooks>(args_, row_.h, row_.b);
#pragma unroll 1
    for (int query = 0; query < queries; ++query) {
      float scores[2] = {};
#pragma unroll 1
      for (int group = 0; group < kGroups; ++group) add_heads(scores, keys, query, group);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float score = scores[half];
        score += __shfl_xor_sync(kAllLanes, score, 1);
        score += __shfl_xor_sync(kAllLanes, score, 2);
        bool visible = true;
        if constexpr (Config::kHasMask) {
          if (is_partial_)
            visible = sees<Hooks>(args_, mask_parts, token_of(first + query),
                                  first_ + place_of(own, half), row_.h, row_.b);
        }
        if (visible) largest[half] = fmaxf(largest[half], score * Config::kTemperature);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (lane_index() % 4 == 0) smem_.scores[place_of(own, half)] = largest[half];
    }
  }

  /// Eight heads of a query: this lane has two of them.
  __device__ __forceinline__ void add_heads(float (&scores)[2], const Packed& keys, int query,
                                            int group) const {
    float products[4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint2 vectors = smem_.vectors[query][group][step][lane_index()];
      multiply_add<Element>(products, keys[step], vectors.x, vectors.y);
    }
    const int head = group * 8 + lane_index() % 4 * 2;
    const float2 weights = *reinterpret_cast<const float2*>(&smem_.weights[query][head]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // What a key that is not finite makes of a head past the last is none of the index.
      if (head < kHeads)
        scores[half] = fmaf(weights.x, positive_part(products[2 * half]), scores[half]);
      if (head + 1 < kHeads)
        scores[half] = fmaf(weights.y, positive_part(products[2 * half + 1]), scores[half]);
    }
  }

  /// The larger of x and 0; NaN stays NaN.
  __device__ __forceinline__ static float positive_part(float x) { return x < 0.0f ? 0.0f : x; }

  __device__ __forceinline__ static int place_of(int own, int half) {
    return own + half * 8 + lane_index() / 4;
  }

  __device__ __forceinline__ float score_of_tile(int t) const {
    float largest = -kInfinity;
#pragma unroll 4
    for (int c = t * Config::kTileK; c < (t + 1) * Config::kTileK && first_ + c < end_; ++c)
      largest = fmaxf(largest, smem_.scores[c]);
    return largest;
  }

  const Args& args_;
  const KeepRow& row_;
  const int first_, end_;  ///< keys
  Smem& smem_;
  const int first_row_, rows_;
  bool is_partial_ = false;
};

}  // namespace lacuna
