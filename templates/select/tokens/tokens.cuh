// `estimate` with the tokens of each query tile (or the last tokens of the sequence) as rows
// against all keys, reduced to key tiles or columns; then `select`.
//
// A block takes one query tile and walks over the keys, chunk by chunk; chunks that the mask hides
// are not loaded. With softmax (or an exact log-sum-exp over `reference`) it walks twice, first for
// each row's sum. In the second walk each tile is decided as soon as it is reduced, so that only
// bits are stored, unless `keep` reads ranks. The last queries of a head, whose result select_rows
// reads, are compared by several blocks and kernels (select/tokens/last_rows.cuh).
#pragma once

#include "loader/row_tile_loader.cuh"
#include "select/keep/select_first.cuh"
#include "select/tokens/index_logits.cuh"
#include "select/tokens/token_reduce.cuh"
#include "select/tokens/token_rows.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class TokenBlock {
  using Shape = TokenShape<Config>;
  using Scores = float[Shape::kBlocks][4];
  using Numbers = float[Shape::kBlocks][2];
  static constexpr bool kIsPlain = Config::kNormalise == Normalise::kNone;
  /// The rows' sums over the estimate itself; for averages also: which rows have any column?
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  static constexpr Merge kWeights = !Config::kSums ? Merge::kLargest
                                    : kIsPlain     ? Merge::kSumOfPresent
                                                   : Merge::kSum;
  static constexpr Merge kScores = Config::kSums ? Merge::kSumOfPresent : Merge::kLargest;
  static constexpr bool kStoresValues =
      Shape::kIsLast || Config::kOrdersTiles || Config::kKeepsFirst;
  /// p, score and the order of the tiles, or p alone.
  static constexpr int kPlanes = token_planes(Config::kOrdersTiles);
  static_assert(!Shape::kIsLast || !Config::kKeepsFirst, "one order serves all rows of a head");

 public:
  static constexpr bool kNeedsSums =
      Config::kNormalise == Normalise::kSoftmax || kIsRowMax || Config::kSums;
  static constexpr bool kNeedsReference = Config::kNormalise == Normalise::kLse;
  static constexpr bool kReadsPrevious = Config::kNormalise == Normalise::kPreviousLse;

  __device__ __forceinline__ TokenBlock(const Args& args, unsigned char* smem)
      : args_(args),
        smem_(smem),
        row_sums_(*reinterpret_cast<typename Shape::RowSums*>(smem + Shape::kKeysOffset)),
        tail_(*reinterpret_cast<typename Shape::Tail*>(smem + Shape::kTailOffset)),
        warp_(warp_index()) {}

  __device__ __forceinline__ void run() {
    if constexpr (shares_keys<Config>() && Config::kKeepsFirst) {
      if (has_few_token_rows<Config>(args_)) {
        with_row_share<Config, Hooks>(args_, smem_,
                                      [](auto& share, int shares) { share.decide(shares); });
        return;
      }
      if (block_index() >= kMostBlocks) return;  // as many as shares of few rows would ask for
    }
    const int rows = args_.attend.n_b * token_rows<Config>(args_);
    for (int number = block_index(); number < rows; number += kMostBlocks) {
      estimate(token_row<Config>(args_, number));
      if constexpr (serves_all_heads<Config>()) give_to_other_heads<Config>(args_, row_);
    }
  }

  /// Of all keys, or of the columns from one to another: whole chunks, or up to the last.
  __device__ __forceinline__ void begin(const KeepRow& row, int first_column, int end_column) {
    row_ = row;
    rows_ = Shape::rows_of(row.q1 - row.q0 + 1);
    first_column_ = first_column, end_column_ = end_column;
  }
  __device__ __forceinline__ void begin(const KeepRow& row) { begin(row, 0, args_.attend.n_k); }

  /// log2 of the mass of this thread's row over its columns: by the estimate, or exactly over the
  /// `reference` keys. To threads of rows alone.
  __device__ __forceinline__ float sum_own() { return sum_rows<Config::kBits, false>(); }
  __device__ __forceinline__ float sum_reference() { return sum_rows<16, true>(); }
  __device__ __forceinline__ float previous_sum() const {
    const LseArg& lse = args_.predict.previous_lse;
    const int q = smaller(row_.q0 + Shape::token_of(thread_index()), args_.attend.n_q - 1);
    return lse.data[row_.b * lse.stride_b + row_.h * lse.stride_h + q] * kLog2E;
  }

  /// Weights of the columns, and what follows from them. Of this thread's row: `own`, the sum of
  /// the estimate, and log2_sum, what divides its weights.
  __device__ __forceinline__ void weigh(float own, float log2_sum) {
    clear_results();
    if constexpr (kNeedsSums) {
      const int has_columns = thread_index() < rows_ && own > -kInfinity;
      const int count = block_sum<Config::kThreads>(has_columns, tail_.select.reduce);
      row_share_ = Config::kSums && count > 0 ? 1.0f / static_cast<float>(count) : 1.0f;
    }
    const bool is_number = own == own;
    publish_offset(is_number && (kIsPlain || log2_sum > -kInfinity), kIsPlain ? 0.0f : log2_sum);
    go_through<Config::kBits, false>(
        [&](const Scores& scores, int of_warp) { take_weights(scores, of_warp); },
        [&](const Step& step) { reduce_chunk(step); });
  }

 private:
  __device__ __forceinline__ void estimate(const KeepRow& row) {
    begin(row);
    if constexpr (!Config::kKeepsFirst) {
      visible_ = count_visible<Config, Hooks>(args_, row_,
                                              BlockTeam<Config::kThreads>(tail_.select.reduce));
    }
    if (has_few_token_rows<Config>(args_)) return decide();
    float own = 0.0f, log2_sum = 0.0f;
    if constexpr (kNeedsSums) own = log2_sum = sum_own();
    if constexpr (kNeedsReference) log2_sum = sum_reference();
    if constexpr (kReadsPrevious) log2_sum = previous_sum();
    weigh(own, log2_sum);
    decide();
  }

  /// What a row's logits are reduced by, in log2; +inf for rows that take no part: rows past the
  /// end, rows without a weight, rows with a NaN, which hurts no other row.
  __device__ __forceinline__ void publish_offset(bool takes_part, float offset) {
    constexpr int kRows = Shape::kRowWarps * Shape::kSets * 16;
    static_assert(kRows <= Config::kThreads, "a thread publishes one row");
    const int r = thread_index();
    if (r < kRows) tail_.offset[r] = takes_part && r < rows_ ? offset : kInfinity;
    __syncthreads();
  }

  /// Where the walk along the keys is: a chunk.
  struct Step {
    int first;  ///< column
    int count;  ///< chunks before
  };

  /// Of the vectors of an index, where there is one; `reference` is always of q and k.
  template <int kBits, bool kIsReference>
  __device__ __forceinline__ auto logits_of_row() const {
    if constexpr (index_dim<Config>() > 0 && kBits == 16 && !kIsReference) {
      return IndexLogits<Shape, Config, Hooks, Args>(args_, row_);
    } else {
      return TokenLogits<Shape, Config, Hooks, Args, kBits, kIsReference>(args_, row_);
    }
  }

  /// body(logits, number of the 16 rows among the warp's) by each warp that has rows, for each
  /// visible chunk; then after(step) by all. Ends with a barrier.
  template <int kBits, bool kIsReference, class Body, class After>
  __device__ __forceinline__ void go_through(Body body, After after) {
    const auto logits = logits_of_row<kBits, kIsReference>();
    Step step = {logits.first_possible(first_column_), 0};
    if (step.first < end_column_) load(logits, step);
    while (step.first < end_column_) {
      const Step next = {logits.first_possible(step.first + Shape::kColumns), step.count + 1};
      cp_async_wait<0>();
      const int* const excluded = publish_excluded<kIsReference>(step);
      if (Shape::kStages == 2 && next.first < end_column_) load(logits, next);
      if (has_rows()) take_chunk(logits, step, excluded, body);
      after(step);
      if constexpr (Shape::kStages == 1) {
        __syncthreads();
        if (next.first < end_column_) load(logits, next);
      }
      step = next;
    }
    __syncthreads();
  }

  template <class Logits>
  __device__ __forceinline__ void load(const Logits& logits, const Step& step) const {
    if (step.count == 0) logits.load_queries(shared_address(smem_));
    if constexpr (index_dim<Config>() > 0) {
      logits.load_keys(smem_ + key_offset(step), step.first);
    } else {
      logits.load_keys(key_slot(step), step.first);
    }
    cp_async_commit();
  }

  /// The sets of 16 rows of this warp, one after another.
  template <class Logits, class Body>
  __device__ __forceinline__ void take_chunk(const Logits& logits, const Step& step,
                                             const int* excluded, Body& body) {
    const bool partial = excluded != nullptr || logits.is_partial(step.first);
    const int offset = split() * Shape::kSplitColumns;
#pragma unroll 1
    for (int of_warp = 0; of_warp < Shape::kSets; ++of_warp) {
      const int set = row_warp() + of_warp * Shape::kRowWarps;
      if (Shape::kSets > 1 && set >= Shape::kRowSets) break;
      typename Logits::Sums sums;
      clear(sums);
      logits.add(sums, shared_address(smem_), key_slot(step), set, split());
      Scores scores;
      logits.scale(scores, sums, set, step.first + offset);
      if (partial) logits.hide(scores, set, step.first + offset, excluded, offset);
      body(scores, of_warp);
    }
  }

  /// Meets the block at the chunk. Flags by tile if `exclude` takes out any, else null.
  template <bool kIsReference>
  __device__ __forceinline__ const int* publish_excluded(const Step& step) {
    if constexpr (!kExcludesTiles<Config> || kIsReference) {
      __syncthreads();
      return nullptr;
    }
    const int t = thread_index(), j = step.first / Shape::kTileColumns + t;
    int* const flags = tail_.excluded[step.count % 2];
    bool excluded = t < Shape::kTiles && j < args_.predict.keep_k_tiles;
    excluded = excluded && excludes_tile<Config, Hooks>(args_, row_, j);
    if (t < Shape::kTiles) flags[t] = excluded;
    return __syncthreads_or(excluded) != 0 ? flags : nullptr;
  }

  /// log2 of the sum of exp(logit) over a row's columns, or of the largest alone, to the thread
  /// with the row's number.
  template <int kBits, bool kIsReference>
  __device__ __forceinline__ float sum_rows() {
    RowSum sums[Shape::kSets][2];
    go_through<kBits, kIsReference>(
        [&](const Scores& scores, int of_warp) {
#pragma unroll
          for (int n = 0; n < Shape::kSets; ++n) {
            if (n == of_warp) add_to_row_sums(sums[n], scores);
          }
        },
        [](const Step&) {});
#pragma unroll
    for (int n = 0; n < Shape::kSets; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        RowSum& sum = sums[n][r];
        sum.template merge_lanes<4>();
        if (!has_rows() || lane_index() % 4 != 0) continue;
        const int number = (row_warp() + n * Shape::kRowWarps) * 16 + lane_index() / 4 + 8 * r;
        row_sums_.largest[split()][number] = sum.largest;
        row_sums_.sum[split()][number] = sum.sum;
      }
    }
    __syncthreads();
    RowSum sum;
    if (thread_index() < rows_) {
#pragma unroll
      for (int n = 0; n < Shape::kSplits; ++n) {
        sum.merge(row_sums_.largest[n][thread_index()], row_sums_.sum[n][thread_index()]);
      }
    }
    __syncthreads();
    return kIsRowMax ? sum.log2_largest() : sum.log2_sum();
  }

  /// Logits of 16 rows -> weights_ and scores_, by column of this lane.
  __device__ __forceinline__ void take_weights(const Scores& scores, int of_warp) {
    const int set = row_warp() + of_warp * Shape::kRowWarps;
    const int row = set * 16 + lane_index() / 4;
    const float offset[2] = {tail_.offset[row], tail_.offset[row + 8]};
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float x = scores[n][i], shift = offset[i / 2];
        const bool takes_part = shift < kInfinity;
        float weight = kIsPlain ? x - shift : fmaf(x, kLog2E, -shift);
        if constexpr (kWeights == Merge::kSum) weight = exp2_approx(weight);
        if (Config::kSums && !takes_part) weight = kNothing<kWeights>;
        const float score = takes_part ? x : -kInfinity;
        const bool opens = i < 2 && of_warp == 0;
        float& kept_weight = weights_[n][i % 2];
        kept_weight = opens ? weight : merge_two<kWeights>(kept_weight, weight);
        if constexpr (Config::kUsesScore) {
          float& kept_score = scores_[n][i % 2];
          kept_score = opens ? score : merge_two<kScores>(kept_score, score);
        }
      }
    }
  }

  /// From the warps' weights to one number for each tile of the chunk, and what follows from it.
  __device__ __forceinline__ void reduce_chunk(const Step& step) {
    auto& parts = *reinterpret_cast<typename Shape::Parts*>(
        smem_ + (Shape::kHasParts ? Shape::kPartsOffset : key_offset(step)));
    if constexpr (!Shape::kHasParts) __syncthreads();
    if (has_rows()) {
      const int slot = split() * (Shape::kSplitColumns / Shape::kUnit);
      reduce_units<kWeights, Shape::kUnit>(parts.weight[row_warp()] + slot, weights_);
      if constexpr (Config::kUsesScore) {
        reduce_units<kScores, Shape::kUnit>(parts.score[row_warp()] + slot, scores_);
      }
    }
    __syncthreads();
    if (warp_ * 32 < Shape::kTiles) take_tiles(parts, step.first / Shape::kTileColumns);
  }

  /// A thread takes one tile of the chunk, whose first tile is given.
  __device__ __forceinline__ void take_tiles(const typename Shape::Parts& parts, int first) {
    constexpr int kSlotsOfTile = Shape::kTileColumns / Shape::kUnit;
    const int t = thread_index(), j = first + t;
    const bool exists = t < Shape::kTiles && j < args_.predict.keep_k_tiles;
    TileValue value;
    if (exists) {
      value.p = merge_parts<kWeights, kSlotsOfTile>(parts.weight, t);
      if constexpr (!Config::kSums && !kIsPlain) value.p = exp2_approx(value.p);
      if constexpr (Config::kSums) value.p *= row_share_;
      if constexpr (Config::kUsesScore)
        value.score = merge_parts<kScores, kSlotsOfTile>(parts.score, t);
    }
    if constexpr (kStoresValues) {
      if (exists) {
        plane(0)[j] = value.p;
        if constexpr (Config::kUsesScore) plane(1)[j] = value.score;
      }
    } else {
      const bool keep = exists && sees_tile<Config, Hooks>(args_, row_, j) &&
                        keeps_tile<Config, Hooks>(args_, row_, j, value, visible_);
      unsigned* const kept = kept_words<Config>(args_, row_);
      if constexpr (Shape::kTiles % 32 == 0) {
        const u32 bits = __ballot_sync(kAllLanes, keep);
        if (lane_index() == 0 && exists) kept[j / 32] = bits;
      } else if (keep) {
        atomicOr(&kept[j / 32], 1u << j % 32);
      }
    }
  }

  /// Tiles that no chunk reaches: not kept, without a weight.
  __device__ __forceinline__ void clear_results() {
    if constexpr (kStoresValues) {
      const int end = ceil_div(end_column_, Shape::kTileColumns);
      for (int j = first_column_ / Shape::kTileColumns + thread_index(); j < end;
           j += Config::kThreads) {
        plane(0)[j] = kIsPlain ? -kInfinity : 0.0f;
        if (Shape::kIsLast || Config::kUsesScore) plane(1)[j] = -kInfinity;
      }
    } else {
      unsigned* const kept = kept_words<Config>(args_, row_);
      for (int word = thread_index(); word < args_.predict.keep_words; word += Config::kThreads) {
        kept[word] = 0;
      }
    }
    __syncthreads();
  }

  /// The bits of a row whose tiles are put in order.
  __device__ __forceinline__ void decide() {
    auto& scratch = *reinterpret_cast<OrderScratch<Shape::kWarps>*>(smem_);
    if constexpr (Config::kKeepsFirst) {
      select_first<Config, Hooks>(args_, row_, plane(0), scratch, tail_.select.reduce);
    } else if constexpr (Config::kOrdersTiles) {
      int* const order = reinterpret_cast<int*>(plane(2));
      order_tiles<BlockTeam<Config::kThreads>>(plane(0), args_.predict.keep_k_tiles, order,
                                               reinterpret_cast<int*>(plane(3)), scratch);
      select_by_order<Config, Hooks>(args_, row_,
                                     {plane(0), plane(1), order, args_.predict.keep_k_tiles},
                                     visible_, tail_.select.words, SelectScratch::kWords,
                                     BlockTeam<Config::kThreads>(tail_.select.reduce));
    }
    __syncthreads();
  }

  /// The 16 rows of this warp (its first, if it has several), and which columns of a chunk it
  /// takes.
  __device__ __forceinline__ int row_warp() const { return warp_ / Shape::kSplits; }
  __device__ __forceinline__ int split() const { return warp_ % Shape::kSplits; }
  __device__ __forceinline__ bool has_rows() const { return row_warp() < Shape::kRowWarps; }

  __device__ __forceinline__ static int key_offset(const Step& step) {
    return Shape::kKeysOffset + step.count % Shape::kStages * Shape::kKeyBytes;
  }
  __device__ __forceinline__ u32 key_slot(const Step& step) const {
    return shared_address(smem_) + static_cast<u32>(key_offset(step));
  }

  /// predict.scores: of the head for the last rows, else of the block; scores of few rows are
  /// apart.
  __device__ __forceinline__ float* plane(int number) const {
    if (has_few_token_rows<Config>(args_) && number == 0) return few_row_scores(args_, row_);
    if constexpr (Shape::kIsLast) return last_rows_plane<Config>(args_, row_.b, row_.h, number);
    const long long first = static_cast<long long>(block_index()) * kPlanes + number;
    return args_.predict.scores + first * args_.predict.keep_k_tiles;
  }

  const Args& args_;
  unsigned char* const smem_;
  typename Shape::RowSums& row_sums_;
  typename Shape::Tail& tail_;
  const int warp_;
  KeepRow row_ = {};
  int rows_ = 0;  ///< of the tile
  int first_column_ = 0, end_column_ = 0;
  int visible_ = 0;  ///< tiles of the row
  float row_share_ = 1.0f;
  Numbers weights_, scores_;  ///< of the chunk, reduced over this lane's rows
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_tokens(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  TokenBlock<Config, Hooks, Args>(args, block_smem).run();
}

}  // namespace lacuna
