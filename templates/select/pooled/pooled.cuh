// `estimate` with the mean of each query tile as its one row, against the means of the key tiles or
// against all keys; then `select`.
//
// Short rows of means go by select/pooled/pooled_means.cuh, single keys by
// select/pooled/pooled_tokens.cuh. Of the others a block takes kRows neighbouring query tiles of a
// head at once, so that keys are read once for all of them: its warps share out the columns and
// leave, for each tile of each row, the logits' reduction; then the block goes through the rows,
// normalises each and decides.
#pragma once

#include "arch/approx.cuh"
#include "base/kinds.cuh"
#include "loader/stored_rows.cuh"
#include "select/keep/decide_row.cuh"
#include "select/keep/held_row.cuh"
#include "select/keep/normalise_row.cuh"
#include "select/pooled/pooled_means.cuh"
#include "select/pooled/pooled_product.cuh"
#include "select/pooled/pooled_tokens.cuh"
#include "select/pooled/pooled_vectors.cuh"
#include "select/pooled/row_scores.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

/// What is left of the logits of one tile and row.
struct TileLogits {
  float largest = -kInfinity;
  float weight = 0.0f;  ///< sum of exp(logit - largest)
  float total = 0.0f;   ///< sum of the logits

  __device__ __forceinline__ void merge(const TileLogits& other) {
    const float raised = fmaxf(largest, other.largest);
    if (raised == -kInfinity) return;
    weight = weight * exp2_approx((largest - raised) * kLog2E) +
             other.weight * exp2_approx((other.largest - raised) * kLog2E);
    largest = raised;
    total += other.total;
  }
  /// ln of the sum of exp(logit).
  __device__ __forceinline__ float log_sum() const {
    return largest == -kInfinity ? -kInfinity : fmaf(log2_approx(weight), kLn2, largest);
  }
};

template <class Config, class Hooks, class Args>
class PooledBlock {
  static constexpr int kRows = Config::kRows;
  static constexpr int kWarps = Config::kThreads / 32;
  static constexpr int kColumns = Config::kColumnsAreTokens ? Config::kTileK : 1;  ///< of a tile
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  static constexpr bool kIsNormal = Config::kNormalise == Normalise::kSoftmax || kIsRowMax;
  using Vectors = PooledVectors<Config>;
  using Rows = PooledRows<Vectors, Config::kHeadDim, kRows>;
  /// Columns that a warp takes before it reduces: whole tiles, in steps of kKeys.
  static constexpr int kSpan = kColumns < Rows::kKeys ? Rows::kKeys : kColumns;
  /// Lanes that share a tile of a row.
  static constexpr int kLanesOfTile = smaller(kColumns, Rows::kKeys);
  static_assert(kSpan % Rows::kKeys == 0 && kSpan % kColumns == 0 &&
                    (kLanesOfTile & (kLanesOfTile - 1)) == 0,
                "lanes share tiles evenly");
  static_assert(kIsNormal || Config::kNormalise == Normalise::kNone,
                "the row of a summary has no log-sum-exp of its own");

  /// Floats for each tile: reduced logits of each row; log-sums of each row, or p of one at a
  /// time; the order of one row.
  static constexpr int kLogSums = kColumns > 1 ? kRows : kIsNormal ? 1 : 0;
  static constexpr int kPlanes = kRows + kLogSums + order_planes(Config::kOrdersTiles);
  static constexpr int kScratchPlanes = pooled_planes(kRows, Config::kOrdersTiles);

  struct Shared {
    OrderScratch<kWarps> order;
    SelectScratch select;
    float planes[1];  ///< to the end
  };
  static constexpr int kPlaneFloats = (Config::kSmemBytes - static_cast<int>(sizeof(Shared))) / 4;
  static_assert(kPlaneFloats > 0);

 public:
  __device__ __forceinline__ PooledBlock(const Args& args, unsigned char* smem)
      : args_(args),
        shared_(*reinterpret_cast<Shared*>(smem)),
        tiles_(args.predict.keep_k_tiles),
        columns_(Config::kColumnsAreTokens ? args.attend.n_k : tiles_),
        rows_(has_few_rows<Config>(args) ? smaller(kRows, args.predict.keep_q_tiles) : kRows) {
    const int planes = rows_ + kPlanes - kRows;
    const bool fits = planes * static_cast<long long>(tiles_) <= kPlaneFloats;
    planes_ = fits ? shared_.planes
                   : args.predict.scores +
                         static_cast<long long>(block_index()) * kScratchPlanes * tiles_;
  }

  __device__ __forceinline__ void run() {
    const int groups = count_row_groups<kRows>(args_);
    for (int number = block_index(); number < groups; number += kMostBlocks) {
      group_ = locate_row_group<kRows>(args_, number);
      if (has_few_rows<Config>(args_)) {
        read_scores();
      } else {
        reduce_logits();
      }
      __syncthreads();
      for (int r = 0; r < group_.rows; ++r) decide(r);
    }
  }

 private:
  __device__ __forceinline__ float* plane(int number) const {
    return planes_ + static_cast<long long>(number) * tiles_;
  }
  __device__ __forceinline__ float* log_sums(int r) const {
    return plane(rows_ + (kLogSums > 1 ? r : 0));
  }

  /// Of few rows the kernel that summarises keys has made them. Several are loaded before the first
  /// is stored.
  __device__ __forceinline__ void read_scores() const {
    constexpr int kAtOnce = 8, kThreads = Config::kThreads;
    for (int r = 0; r < group_.rows; ++r) {
      const KeepRow row = keep_row_of<Config>(args_, group_, r);
      const float* const scores = row_scores_of(args_, row.b, row.h, row.i);
      const bool is_short = tiles_ <= 32 * kThreads;
      const u32 seen = is_short ? seen_by_thread<Config, Hooks, kThreads>(args_, row) : 0u;
#pragma unroll 1
      for (int first = 0; first < tiles_; first += kAtOnce * kThreads) {
        float own[kAtOnce];
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n) {
          const int j = first + n * kThreads + thread_index();
          own[n] = j < tiles_ ? scores[j] : -kInfinity;
        }
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n) {
          const int j = first + n * kThreads + thread_index();
          if (j >= tiles_) break;
          bool counts = is_short ? (seen >> (first / kThreads + n) & 1u) != 0
                                 : sees_tile<Config, Hooks>(args_, row, j);
          if constexpr (kExcludesTiles<Config>)
            counts = counts && !excludes_tile<Config, Hooks>(args_, row, j);
          plane(r)[j] = counts ? own[n] : -kInfinity;
        }
      }
    }
  }

  __device__ __forceinline__ void reduce_logits() const {
    const Rows rows(
        args_.predict.q_summary +
            (query_head(args_, group_.b, group_.h) * args_.predict.keep_q_tiles + group_.first) *
                Config::kHeadDim,
        group_.rows);
    for (int begin = warp_index() * kSpan; begin < columns_; begin += kWarps * kSpan) {
      TileLogits tile;
#pragma unroll 1
      for (int step = 0; step < kSpan; step += Rows::kKeys) take_step(rows, begin + step, tile);
#pragma unroll
      for (int lanes = 1; lanes < kLanesOfTile; lanes *= 2) {
        tile.merge({__shfl_xor_sync(kAllLanes, tile.largest, lanes),
                    __shfl_xor_sync(kAllLanes, tile.weight, lanes),
                    __shfl_xor_sync(kAllLanes, tile.total, lanes)});
      }
      const int column = begin + Rows::key_of_lane();
      const int r = Rows::row_of_lane(), j = column / kColumns;
      const bool writes = Rows::key_of_lane() % kLanesOfTile == 0 && j < tiles_ && r < group_.rows;
      if (!writes) continue;
      const bool is_seen = tile.largest > -kInfinity;
      plane(r)[j] = Config::kSums && is_seen ? tile.total : tile.largest;
      if constexpr (kColumns > 1) log_sums(r)[j] = tile.log_sum();
    }
  }

  /// kKeys columns from `first` on.
  __device__ __forceinline__ void take_step(const Rows& rows, int first, TileLogits& tile) const {
    const int column = first + Rows::key_of_lane();
    const bool sees = Rows::row_of_lane() < group_.rows && column < columns_ && sees_column(column);
    if (!__any_sync(kAllLanes, sees)) return;
    float dot;
    if constexpr (Config::kColumnsAreTokens) {
      const TensorArg& k = args_.attend.k;
      const int h = group_.h / args_.attend.heads_per_kv;
      if constexpr (attends_to_pages<Config>()) {
        dot = rows.multiply_each(
            [&](int key) {
              return stored_row<Config, KvTensor::kKeys>(args_, k, group_.b, h, key, 0);
            },
            first, columns_ - 1);
      } else {
        const auto keys = stored_row<Config, KvTensor::kKeys>(args_, k, group_.b, h, 0, 0);
        dot = rows.multiply_each([&](int key) { return keys.moved(key * k.stride_n); }, first,
                                 columns_ - 1);
      }
    } else {
      const float* const keys = Vectors::columns(args_, group_.b, group_.h);
      dot = rows.multiply(keys, Vectors::kLength, first, columns_ - 1);
    }
    if (!sees) return;
    const float logit = dot * args_.attend.scale * Config::kTemperature;
    tile.merge({logit, 1.0f, logit});
  }

  __device__ __forceinline__ bool sees_column(int column) const {
    const KeepRow row = keep_row_of<Config>(args_, group_, Rows::row_of_lane());
    const int j = column / kColumns;
    const bool sees = Config::kColumnsAreTokens
                          ? sees_cell<Config, Hooks>(args_, row, column, column)
                          : sees_tile<Config, Hooks>(args_, row, j);
    return sees && !excludes_tile<Config, Hooks>(args_, row, j);
  }

  __device__ __forceinline__ void decide(int r) const {
    const KeepRow row = keep_row_of<Config>(args_, group_, r);
    float* const p = kIsNormal ? log_sums(r) : plane(r);
    if constexpr (kIsNormal) normalise(plane(r), p);
    int* const order = reinterpret_cast<int*>(plane(rows_ + kLogSums));
    decide_row<Config, Hooks>(args_, row, p, plane(r), order, shared_.order, shared_.select);
  }

  /// Reduced logits and log-sums -> p, in the place of the log-sums.
  __device__ __forceinline__ void normalise(const float* reduced, float* p) const {
    const float* const log_sums = kColumns > 1 && !kIsRowMax ? p : reduced;
    normalise_row<Config::kThreads, kIsRowMax>(log_sums, Config::kSums ? log_sums : reduced, p,
                                               tiles_, shared_.select.reduce);
  }

  const Args& args_;
  Shared& shared_;
  const int tiles_, columns_;
  const int rows_;  ///< that there are planes for
  float* planes_;
  RowGroup group_ = {};
};

/// Few rows whose scores are there, and which a block holds in registers. False: they are not.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ bool decide_held_rows(const Args& args, unsigned char* smem) {
  if constexpr (scores_few_rows<Config>() && HeldRow<Config, Hooks, Args>::kIsPossible) {
    using Held = HeldRow<Config, Hooks, Args>;
    static_assert(sizeof(typename Held::Smem) <= Config::kSmemBytes);
    if (!has_few_rows<Config>(args) || args.predict.keep_k_tiles > Held::kMost) return false;
    const int groups = count_row_groups<Config::kRows>(args);
    for (int number = block_index(); number < groups; number += kMostBlocks) {
      const RowGroup group = locate_row_group<Config::kRows>(args, number);
      for (int r = 0; r < group.rows; ++r) {
        const KeepRow row = keep_row_of<Config>(args, group, r);
        Held held(args, row, *reinterpret_cast<typename Held::Smem*>(smem));
        held.decide(row_scores_of(args, row.b, row.h, row.i));
      }
    }
    return true;
  }
  return false;
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_pooled(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  if constexpr (Config::kDecidesKeys) {
    PooledTokens<Config, Hooks, Args>(args, block_smem).run();
  } else {
    if (decide_held_rows<Config, Hooks>(args, block_smem)) return;
    if constexpr (!Config::kColumnsAreTokens) {
      using Means = PooledMeans<Config, Hooks, Args>;
      if (Means::takes(args)) return Means(args, block_smem).run();
    }
    PooledBlock<Config, Hooks, Args>(args, block_smem).run();
  }
}

}  // namespace lacuna
