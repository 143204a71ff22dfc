// Of each key tile of the predictor, the smallest and the largest of each element: bounds of the
// products of its keys with any query. A warp takes a tile. NaN and infinity count as 0, as they do
// in means: where a warp finds one in its bounds, it reads the tile again and replaces them.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/predict_args.cuh"
#include "base/math.cuh"
#include "loader/stored_rows.cuh"
#include "select/pooled/kept_summaries.cuh"
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
  static constexpr int kBoundsAtOnce = 2;  ///< tiles whose bounds are read together
  using Keys = uint4[kGroupSteps];

 public:
  /// What a lane has at the end. Where a warp reads several rows at once, lanes of the first row
  /// have the smallest elements, those of the second row the largest; else every lane has both.
  static constexpr int kBoundsOfLane = kRows > 1 ? 1 : 2;
  static constexpr int kQuads = 2 * kBoundsOfLane;

  /// `end`: of the block's tiles.
  __device__ __forceinline__ BoundedTiles(const Args& args, int b, int h, int first, int end)
      : args_(args), b_(b), h_(h), first_(first) {
    count_ = end > first ? ceil_div(end - first, kWarps) : 0;
    row_ = lane_index() / kLanes;
    column_ = lane_index() % kLanes * 8;
    exists_ = column_ < kHeadDim;
    if (!exists_) column_ = 0;
  }

  /// use(first tile, end, bounds of those a warp apart), which are among `bounds` of the head's
  /// tiles.
  template <class Use>
  __device__ __forceinline__ void read(const float* bounds, const Use& use) const {
#pragma unroll 1
    for (int first = 0; first < count_; first += kBoundsAtOnce) {
      SummaryQuad quads[kBoundsAtOnce][kQuads];
#pragma unroll
      for (int n = 0; n < kBoundsAtOnce; ++n)
        fetch(quads[n], bounds, smaller(first + n, count_ - 1));
      use(tile(first), tile(count_), quads);
    }
  }

  /// use(tile, its bounds), which are found in the keys.
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
      SummaryQuad quads[1][kQuads];
      find_bounds(quads[0], pairs, n);
      use(tile(n), quads);
    }
  }

 private:
  /// Of a chunk's eight elements, two in a word.
  struct Pairs {
    u32 least[4], most[4];
  };

  __device__ __forceinline__ int tile(int n) const { return first_ + n * kWarps; }
  /// Of the first element that this lane has, counted as PooledVectors does; negative: of none.
  __device__ __forceinline__ int column_of(int own) const {
    const int bound = kRows > 1 ? row_ : own;
    return exists_ && bound < 2 ? bound * kHeadDim + column_ : -8;
  }
  __device__ __forceinline__ void fetch(SummaryQuad (&quads)[kQuads], const float* bounds,
                                        int n) const {
    const float* const of_tile = bounds + static_cast<long long>(tile(n)) * 2 * kHeadDim;
#pragma unroll
    for (int own = 0; own < kBoundsOfLane; ++own) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        SummaryQuad& quad = quads[2 * own + half];
        quad.column = column_of(own) + 4 * half;
        if (quad.column >= 0) quad.x = *reinterpret_cast<const float4*>(of_tile + quad.column);
      }
    }
  }
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
      const int column = column_of(own);
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

/// A block's tiles of a KV head: those that it reads, if their summaries stay, and those whose keys
/// it reads.
template <class Config, class Args>
struct BoundedShare {
  using Tiles = BoundedTiles<Config, Args>;
  static constexpr int kWarps = Config::kThreads / 32;
  static constexpr int kKnown = kKnownTiles * kWarps, kFound = kBoundedTiles * kWarps;
  int head, b, h, known, first_known, first_found;

  /// `number`: of the share, counted through the heads.
  __device__ __forceinline__ BoundedShare(const Args& args, int number) {
    const int heads = args.attend.n_h / args.attend.heads_per_kv;
    const int shares = ceil_div(args.predict.keep_k_tiles, kFound);
    head = number / shares;
    b = head / heads, h = head - b * heads;
    known = known_summaries<Config, Config::kTileK>(args, b);
    first_known = (number - head * shares) * kKnown;
    first_found = (number - head * shares) * kFound;
  }
  __device__ __forceinline__ int end_of_known() const {
    return smaller(known, first_known + kKnown);
  }
  __device__ __forceinline__ int end_of_found(const Args& args) const {
    return smaller(args.predict.keep_k_tiles, first_found + kFound);
  }
  __device__ __forceinline__ bool is_empty(const Args& args) const {
    return first_known >= known && known >= end_of_found(args);
  }
  /// Of this warp.
  __device__ __forceinline__ Tiles tiles_to_read(const Args& args) const {
    return Tiles(args, b, h, first_known + warp_index(), end_of_known());
  }
  __device__ __forceinline__ Tiles tiles_to_find(const Args& args) const {
    int first = first_found + warp_index();
    if (known > first) first += ceil_div(known - first, kWarps) * kWarps;
    return Tiles(args, b, h, first, end_of_found(args));
  }
};

/// Bounds where they stay, or predict.k_summary; and where few rows ask, in its place,
/// predict.row_scores.
template <class Config, class Args>
__device__ __forceinline__ void bound_share(const Args& args, const BoundedShare<Config, Args>& own,
                                            float* smem) {
  constexpr int kLength = 2 * Config::kHeadDim;
  float* const summaries = summaries_of_head<Config>(args, own.head, kLength);
  const auto write = [&](int j, const auto& bounds) {
    float* const summary = summaries + static_cast<long long>(j) * kLength;
#pragma unroll
    for (const SummaryQuad& quad : bounds) {
      if (quad.column >= 0) *reinterpret_cast<float4*>(summary + quad.column) = quad.x;
    }
  };
  if constexpr (scores_few_rows<Config>()) {
    if (has_few_rows<Config>(args)) {
      const float* const means = means_of_few_rows<Config>(args, own.head);
      for (int n = 4 * thread_index(); n < rows_of_kv_head(args) * kLength;
           n += 4 * Config::kThreads)
        *reinterpret_cast<float4*>(smem + n) =
            elements_of_row<Config>(means, n / kLength, n % kLength);
      __syncthreads();
      const auto multiply = [&](int first, int end, const auto& bounds) {
        multiply_few_rows<Config, 1>(
            args, own.head, first, BoundedShare<Config, Args>::kWarps, end, bounds, 0,
            [&](int row, int column) {
              return *reinterpret_cast<const float4*>(smem + row * kLength + column);
            });
      };
      if constexpr (keeps_summaries<Config>()) own.tiles_to_read(args).read(summaries, multiply);
      own.tiles_to_find(args).run([&](int j, const auto& bounds) {
        if (summaries_stay<Config>(args)) write(j, bounds[0]);
        multiply(j, j + 1, bounds);
      });
      return;
    }
  }
  own.tiles_to_find(args).run([&](int j, const auto& bounds) { write(j, bounds[0]); });
}

/// Config: kTileK. Where summaries stay a grid may have fewer blocks than there are shares.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void bound_keys(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  float* const smem = reinterpret_cast<float*>(block_smem);
  using Share = BoundedShare<Config, Args>;
  const int shares = args.attend.n_b * (args.attend.n_h / args.attend.heads_per_kv) *
                     ceil_div(args.predict.keep_k_tiles, Share::kFound);
  if constexpr (keeps_summaries<Config>()) {
    for (int number = block_index(); number < shares; number += static_cast<int>(gridDim.x)) {
      const Share own(args, number);
      if (own.is_empty(args)) continue;
      bound_share<Config>(args, own, smem);
      __syncthreads();
    }
  } else if (block_index() < shares) {
    bound_share<Config>(args, Share(args, block_index()), smem);
  }
}

}  // namespace lacuna
