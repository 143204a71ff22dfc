// Of each key tile of the predictor, the smallest and the largest of each element: bounds of the
// products of its keys with any query. A warp takes a tile. NaN and infinity count as 0, as they do
// in means: where a warp finds one in its bounds, it reads the tile again and replaces them.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/predict_args.cuh"
#include "base/math.cuh"
#include "loader/stored_rows.cuh"
#include "select/pooled/row_scores.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// The tiles of a warp, one after the other: number first, first + kWarps, ... of a KV head. While
/// it works on some keys it loads the next ones.
template <class Config, class Args>
class BoundedTiles {
  using Element = typename Config::Element;
  static constexpr int kHeadDim = Config::kHeadDim, kWarps = Config::kThreads / 32;
  static constexpr int kChunks = kHeadDim / 8;  ///< of a row: a lane has one
  static constexpr int kLanes = kChunks > 16 ? 32 : kChunks > 8 ? 16 : 8;  ///< of a row
  static constexpr int kRows = 32 / kLanes;                                ///< at once
  static constexpr int kSteps = ceil_div(Config::kTileK, kRows);
  static constexpr int kGroupSteps = smaller(kSteps, 8);  ///< that are loaded together
  static constexpr int kGroups = ceil_div(kSteps, kGroupSteps);
  static_assert(kHeadDim % 8 == 0 && kChunks <= 32, "a lane has a chunk of a row");
  using Keys = uint4[kGroupSteps];

 public:
  /// What a lane has at the end. Where a warp reads several rows at once, lanes of the first row
  /// have the smallest elements, those of the second row the largest; else every lane has both.
  static constexpr int kBoundsOfLane = kRows > 1 ? 1 : 2;
  static constexpr int kQuads = 2 * kBoundsOfLane;

  __device__ __forceinline__ BoundedTiles(const Args& args, int b, int h, int first)
      : args_(args), b_(b), h_(h), first_(first) {
    const int left = args.predict.keep_k_tiles - first;
    count_ = left > 0 ? smaller(ceil_div(left, kWarps), kBoundedTiles) : 0;
    row_ = lane_index() / kLanes;
    column_ = lane_index() % kLanes * 8;
    exists_ = column_ < kHeadDim;
    if (!exists_) column_ = 0;
  }

  /// use(tile, its bounds)
  template <class Use>
  __device__ __forceinline__ void run(const Use& use) const {
    Keys next;
    if (count_ > 0) load(next, 0, 0);
#pragma unroll 1
    for (int n = 0; n < count_; ++n) {
      Pairs pairs;
#pragma unroll(kGroups <= 2 ? kGroups : 1)
      for (int group = 0; group < kGroups; ++group) {
        Keys keys;
#pragma unroll
        for (int step = 0; step < kGroupSteps; ++step) keys[step] = next[step];
        if (group + 1 < kGroups) {
          load(next, n, group + 1);
        } else if (n + 1 < count_) {
          load(next, n + 1, 0);
        }
        merge_keys(pairs, keys, group == 0);
      }
      SummaryQuad quads[kQuads];
      find_bounds(quads, pairs, n);
      use(tile(n), quads);
    }
  }

 private:
  /// Of a chunk's eight elements, two in a word.
  struct Pairs {
    u32 least[4], most[4];
  };

  __device__ __forceinline__ int tile(int n) const { return first_ + n * kWarps; }
  __device__ __forceinline__ int last_token(int n) const {
    return smaller((tile(n) + 1) * Config::kTileK, args_.attend.n_k) - 1;
  }
  __device__ __forceinline__ uint4 chunk_of(int token) const {
    return stored_row<Config, KvTensor::kKeys>(args_, args_.attend.k, b_, h_, token, column_)
        .chunk();
  }

  /// The last token stands for those behind it.
  __device__ __forceinline__ void load(Keys& keys, int n, int group) const {
    const int first = tile(n) * Config::kTileK + group * kGroupSteps * kRows + row_;
#pragma unroll
    for (int step = 0; step < kGroupSteps; ++step)
      keys[step] = chunk_of(smaller(first + step * kRows, last_token(n)));
  }

  __device__ __forceinline__ static void merge(Pairs& pairs, const u32 (&least)[4],
                                               const u32 (&most)[4]) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      pairs.least[n] = smaller_pair<Element>(pairs.least[n], least[n]);
      pairs.most[n] = larger_pair<Element>(pairs.most[n], most[n]);
    }
  }

  /// Two elements are compared at once; NaN wins.
  __device__ __forceinline__ static void merge_keys(Pairs& pairs, const Keys& keys, bool opens) {
#pragma unroll
    for (int step = 0; step < kGroupSteps; ++step) {
      const u32 words[4] = {keys[step].x, keys[step].y, keys[step].z, keys[step].w};
      if (step == 0 && opens) {
#pragma unroll
        for (int n = 0; n < 4; ++n) pairs.least[n] = pairs.most[n] = words[n];
      } else {
        merge(pairs, words, words);
      }
    }
  }

  __device__ __forceinline__ void find_bounds(SummaryQuad (&quads)[kQuads], Pairs& pairs,
                                              int n) const {
#pragma unroll
    for (int lanes = kLanes; lanes < 32; lanes *= 2) {
      u32 least[4], most[4];
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        least[word] = __shfl_xor_sync(kAllLanes, pairs.least[word], lanes);
        most[word] = __shfl_xor_sync(kAllLanes, pairs.most[word], lanes);
      }
      merge(pairs, least, most);
    }
    float smallest[8], largest[8];
    unpack(smallest, pairs.least), unpack(largest, pairs.most);
    bool is_finite = true;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      is_finite = is_finite && fabsf(smallest[e]) < kInfinity && fabsf(largest[e]) < kInfinity;
    if (__any_sync(kAllLanes, !is_finite)) find_finite_bounds(smallest, largest, n);
#pragma unroll
    for (int own = 0; own < kBoundsOfLane; ++own) {
      const int bound = kRows > 1 ? row_ : own;
      const int column = exists_ && bound < 2 ? bound * kHeadDim + column_ : -8;
      float x[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) x[e] = bound == 0 ? smallest[e] : largest[e];
      quads[2 * own] = {{x[0], x[1], x[2], x[3]}, column};
      quads[2 * own + 1] = {{x[4], x[5], x[6], x[7]}, column + 4};
    }
  }

  __device__ __forceinline__ static void unpack(float (&x)[8], const u32 (&words)[4]) {
    unpack_chunk<Element>(x, {words[0], words[1], words[2], words[3]});
  }

  __device__ __forceinline__ void find_finite_bounds(float (&smallest)[8], float (&largest)[8],
                                                     int n) const {
#pragma unroll
    for (int e = 0; e < 8; ++e) smallest[e] = kInfinity, largest[e] = -kInfinity;
#pragma unroll 1
    for (int token = tile(n) * Config::kTileK; token <= last_token(n); ++token) {
      float x[8];
      unpack_chunk<Element>(x, chunk_of(token));
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float finite = fabsf(x[e]) < kInfinity ? x[e] : 0.0f;
        smallest[e] = fminf(smallest[e], finite), largest[e] = fmaxf(largest[e], finite);
      }
    }
  }

  const Args& args_;
  int b_, h_, first_, count_;
  int row_, column_;  ///< of this lane
  bool exists_;       ///< else it has no chunk of its own
};

/// predict.k_summary, or in its place predict.row_scores where few rows ask. Config: kTileK.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void bound_keys(const Args& args) {
  constexpr int kLength = 2 * Config::kHeadDim;
  const int tiles = args.predict.keep_k_tiles, heads = args.attend.n_h / args.attend.heads_per_kv;
  const int blocks = ceil_div(tiles, kBoundedTiles * (Config::kThreads / 32));
  const int head = block_index() / blocks;
  if (head >= args.attend.n_b * heads) return;
  const int first = (block_index() - head * blocks) * kBoundedTiles * (Config::kThreads / 32);
  const int b = head / heads, h = head - b * heads;
  const BoundedTiles<Config, Args> own(args, b, h, first + warp_index());
  if constexpr (scores_few_rows<Config>()) {
    if (has_few_rows<Config>(args)) {
      extern __shared__ __align__(1024) unsigned char block_smem[];
      float* const rows = reinterpret_cast<float*>(block_smem);
      const float* const means = means_of_few_rows<Config>(args, head);
      for (int n = 4 * thread_index(); n < rows_of_kv_head(args) * kLength;
           n += 4 * Config::kThreads)
        *reinterpret_cast<float4*>(rows + n) =
            elements_of_row<Config>(means, n / kLength, n % kLength);
      __syncthreads();
      own.run([&](int j, const auto& bounds) {
        multiply_few_rows<Config>(args, head, j, bounds, 0, 1, [&](int row, int column) {
          return *reinterpret_cast<const float4*>(rows + row * kLength + column);
        });
      });
      return;
    }
  }
  own.run([&](int j, const auto& bounds) {
    float* const summary =
        args.predict.k_summary + (static_cast<long long>(head) * tiles + j) * kLength;
#pragma unroll
    for (const SummaryQuad& quad : bounds) {
      if (quad.column >= 0) *reinterpret_cast<float4*>(summary + quad.column) = quad.x;
    }
  });
}

}  // namespace lacuna
