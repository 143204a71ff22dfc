// Of tiles of tokens, the sums of a prepare block's columns, and what is made of them: summaries
// and self-similarities. A warp sums its own rows; sums of a tile meet in shared memory.
#pragma once

#include "arch/prefetch.cuh"
#include "base/math.cuh"
#include "prepare/rows.cuh"
#include "select/pooled/kept_summaries.cuh"
#include "select/pooled/row_scores.cuh"

namespace lacuna {

/// Which rows a column sum takes: all, those that have a direction, or those made unit length.
enum class RowUse { kAll, kDirected, kUnit };

template <class Layout, int kHeadDim>
struct SumsSmem {
  float length[Layout::kRows];  ///< Euclidean; of cosines its reciprocal; 0: no direction
  float summary[Layout::kWarps][kHeadDim];     ///< of one warp's rows, by column
  float similarity[Layout::kWarps][kHeadDim];  ///< the same, of rows made unit length
};

/// kStay: summaries are written where they stay (select/pooled/kept_summaries.cuh).
template <class Config, class Args, bool kStay = false>
class PrepareSums {
  static constexpr int kHeadDim = Config::kHeadDim;
  static constexpr bool kHasSummary = Config::kSummaryTile != 0;
  static constexpr int kTilesOfBlock = kHasSummary ? Config::kTokens / Config::kSummaryTile : 0;
  static constexpr bool kHasSimilarity = Config::kSimilarityTile != 0;
  static constexpr RowUse kSimilarityRows = Config::kGramMax ? RowUse::kDirected : RowUse::kUnit;
  using Element = typename Config::Element;
  using Rows = PrepareRows<Config, Args>;
  using Layout = typename Rows::Layout;
  using Columns = typename Rows::Columns;

 public:
  using Smem = SumsSmem<Layout, kHeadDim>;

  /// How a tile's rows lie in passes: kRun of them are summed by one warp, in kPasses passes,
  /// kRunRows in each.
  template <int kTile>
  struct Run {
    static constexpr int kRows =
        kTile == 0 ? Layout::kRowsPerWarp : smaller(kTile, Layout::kRowsPerWarp);
    static constexpr int kPasses = ceil_div(kRows, Layout::kRowsPerPass);
    static constexpr int kRunRows = smaller(kRows, Layout::kRowsPerPass);
    static constexpr bool kIsTile = kTile <= Layout::kRowsPerWarp;  ///< a tile needs no other warp
    static constexpr int kParts = kIsTile ? 1 : kTile / Layout::kRowsPerWarp;
    static_assert(kTile == 0 || (Config::kTokens % kTile == 0 && (kTile & (kTile - 1)) == 0));
  };

  __device__ __forceinline__ PrepareSums(Smem& smem) : smem_(smem), warp_(warp_index()) {}

  /// Queries that this warp will multiply with come from memory while keys do.
  __device__ __forceinline__ void prefetch_queries(const Rows& rows) const {
    if constexpr (scores_few_rows<Config>()) {
      const int row = Run<Config::kSummaryTile>::kIsTile ? 0 : warp_ / kTilesOfBlock;
      if (!has_few_rows<Config>(rows.args()) || row >= rows_of_kv_head(rows.args())) return;
      const float* const queries = means_of_few_rows<Config>(rows.args(), rows.head());
      for (int column = 4 * lane_index(); column < kHeadDim; column += 128)
        prefetch_to_l1(queries + row * kHeadDim + column);
    }
  }

  /// Where summaries stay: tokens of a batch entry from the first on whose tiles are known; all of
  /// them, or those of whole blocks, because a block makes all of its tiles together.
  __device__ __forceinline__ static int known_tokens(const Args& args, int b) {
    constexpr int kTile = Config::kSummaryTile;
    const int n = args.attend.n_k, known = kTile * known_summaries<Config, kTile>(args, b);
    return known >= n ? n : known / Config::kTokens * Config::kTokens;
  }
  /// Has a head's block of this number nothing to do?
  __device__ __forceinline__ static bool is_idle(const Args& args, int number, int known) {
    const int end = smaller((number + 1) * Config::kTokens, args.attend.n_k);
    return end <= known && number * kShareTiles * Config::kSummaryTile >= known;
  }
  /// What is left to do with these: where few rows ask, their products. They are so little to read
  /// that the first blocks take them, more than they have tokens for.
  __device__ __forceinline__ void multiply_known(const Rows& rows, int known) const {
    if (!has_few_rows<Config>(rows.args())) return;
    const int tiles = ceil_div(known, Config::kSummaryTile);
    const int first = rows.first() / Config::kTokens * kShareTiles + warp_;
    const int end = smaller(tiles, first - warp_ + kShareTiles);
    const float* const summaries = summaries_of_head<Config>(rows.args(), rows.head(), kHeadDim);
#pragma unroll 1
    for (int tile = first; tile < end; tile += kMeansAtOnce * Layout::kWarps) {
      SummaryQuad means[kMeansAtOnce][kQuads];
#pragma unroll
      for (int n = 0; n < kMeansAtOnce; ++n)
        read_means(means[n], summaries, smaller(tile + n * Layout::kWarps, end - 1));
      multiply_means<1>(rows, tile, Layout::kWarps, end, means, 0);
    }
  }

  __device__ __forceinline__ void put_summary(const Rows& rows, Columns& sums, int first) {
    if constexpr (Config::kRoundsSummary && Run<Config::kSummaryTile>::kIsTile) {
      put_cells(rows, sums, first);
      return;
    }
    put_sums<Config::kSummaryTile>(sums, first, smem_.summary[warp_],
                                   [&](int tile) { finish_summary(rows, tile); });
  }
  /// After the lengths of the warp's rows.
  __device__ __forceinline__ void put_similarity(const Rows& rows, Columns& sums, int first) {
    put_sums<Config::kSimilarityTile>(sums, first, smem_.similarity[warp_],
                                      [&](int tile) { write_similarity(rows, tile); });
  }

  /// Those of more than one warp; a warp takes a tile, the last ones the similarities.
  __device__ __forceinline__ void finish_tiles(const Rows& rows) const {
    if constexpr (kHasSummary && !Run<Config::kSummaryTile>::kIsTile) finish_summaries(rows);
    if constexpr (kHasSimilarity && !Run<Config::kSimilarityTile>::kIsTile) {
      const int tile = Layout::kWarps - 1 - warp_;
      if (tile < Config::kTokens / Config::kSimilarityTile) write_similarity(rows, tile);
    }
  }

 private:
  /// The sums of a warp's passes from `first` on, over the rows of a pass and to shared memory.
  /// Tiles that lie within the warp are finished right away, the others after the block's barrier.
  template <int kTile, class Finish>
  __device__ __forceinline__ void put_sums(Columns& sums, int first, float* target,
                                           const Finish& finish) {
    using R = Run<kTile>;
    add_rows<R::kRunRows>(sums);
#pragma unroll
    for (int run = 0; run < Layout::kRowsPerPass; run += R::kRunRows) {
      if (lane_index() / Layout::kLanesPerRow == run) store_columns(target, sums);
      if constexpr (!R::kIsTile) continue;
      __syncwarp();
      const int row = warp_ * Layout::kRowsPerWarp + first * Layout::kRowsPerPass + run;
      if (row < Config::kTokens) finish(row / kTile);
      __syncwarp();
    }
  }

  /// Over so many neighbouring rows of a pass, to all of them.
  template <int kRunRows>
  __device__ __forceinline__ static void add_rows(Columns& sums) {
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
#pragma unroll
        for (int rows = 1; rows < kRunRows; rows *= 2) {
          sums[step][e] += __shfl_xor_sync(kAllLanes, sums[step][e], rows * Layout::kLanesPerRow);
        }
      }
    }
  }

  /// Cells that lie within a warp: their means, from the registers. The first row of a cell in a
  /// pass writes it.
  __device__ __forceinline__ void put_cells(const Rows& rows, Columns& sums, int first) const {
    constexpr int kTile = Config::kSummaryTile;
    using R = Run<kTile>;
    add_rows<R::kRunRows>(sums);
    const int of_pass = lane_index() / Layout::kLanesPerRow;
    const int row = warp_ * Layout::kRowsPerWarp + first * Layout::kRowsPerPass + of_pass;
    if (of_pass % R::kRunRows != 0 || row >= Config::kTokens) return;
    const int cell = row / kTile;
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      float mean[8];
#pragma unroll
      for (int e = 0; e < 8; ++e)
        mean[e] = mean_of_cell(rows, cell, Layout::column(step) + e, sums[step][e]);
      *reinterpret_cast<uint4*>(cell_address(rows, cell) + Layout::column(step)) = {
          pack<Element>(mean[0], mean[1]), pack<Element>(mean[2], mean[3]),
          pack<Element>(mean[4], mean[5]), pack<Element>(mean[6], mean[7])};
    }
  }

  /// 0 of a cell past the end: of these, too, there are whole blocks.
  __device__ __forceinline__ float mean_of_cell(const Rows& rows, int cell, int column,
                                                float sum) const {
    constexpr int kTile = Config::kSummaryTile;
    if (!(fabsf(sum) < kInfinity))
      sum = sum_again<kTile, RowUse::kAll, Config::kSmoothSummary>(rows, cell, column);
    const int tokens = smaller(rows.left() - cell * kTile, kTile);
    if (tokens == kTile) return sum * (1.0f / kTile);
    return tokens > 0 ? sum / static_cast<float>(tokens) : 0.0f;
  }

  __device__ __forceinline__ static unsigned short* cell_address(const Rows& rows, int cell) {
    const PrepareSide& side = rows.side();
    const long long number =
        static_cast<long long>(rows.head()) * (side.padded / Config::kSummaryTile) +
        rows.first() / Config::kSummaryTile + cell;
    return side.cells + number * kHeadDim;
  }

  /// Of a cell of more than one warp.
  __device__ __forceinline__ void write_cell(const Rows& rows, int cell) const {
    for (int column = 2 * lane_index(); column < kHeadDim; column += 64) {
      float mean[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float sum = 0.0f;
#pragma unroll
        for (int part = 0; part < Run<Config::kSummaryTile>::kParts; ++part)
          sum += smem_.summary[cell * Run<Config::kSummaryTile>::kParts + part][column + e];
        mean[e] = mean_of_cell(rows, cell, column + e, sum);
      }
      *reinterpret_cast<u32*>(cell_address(rows, cell) + column) = pack<Element>(mean[0], mean[1]);
    }
  }

  __device__ __forceinline__ static void store_columns(float* target, const Columns& sums) {
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      float4* columns = reinterpret_cast<float4*>(target + Layout::column(step));
      columns[0] = {sums[step][0], sums[step][1], sums[step][2], sums[step][3]};
      columns[1] = {sums[step][4], sums[step][5], sums[step][6], sums[step][7]};
    }
  }

  /// Of a tile in `sums` of this warp, or from the tile's first warp on.
  template <int kTile, RowUse kUse, bool kSmooth>
  __device__ __forceinline__ float column_sum(const Rows& rows, const float (*sums)[kHeadDim],
                                              int tile, int column) const {
    using R = Run<kTile>;
    float sum = 0.0f;
    if constexpr (R::kIsTile) {
      sum = sums[warp_][column];
    } else {
#pragma unroll
      for (int part = 0; part < R::kParts; ++part) sum += sums[tile * R::kParts + part][column];
    }
    return fabsf(sum) < kInfinity ? sum : sum_again<kTile, kUse, kSmooth>(rows, tile, column);
  }

  /// Of four neighbouring columns of a summary.
  template <int kTile>
  __device__ __forceinline__ float4 four_sums(const Rows& rows, int tile, int column) const {
    using R = Run<kTile>;
    const float(*const sums)[kHeadDim] = smem_.summary + (R::kIsTile ? warp_ : tile * R::kParts);
    float4 sum = {};
#pragma unroll
    for (int part = 0; part < R::kParts; ++part) {
      const float4 own = *reinterpret_cast<const float4*>(sums[part] + column);
      sum = {sum.x + own.x, sum.y + own.y, sum.z + own.z, sum.w + own.w};
    }
    const auto finite = [&](float x, int e) {
      if (fabsf(x) < kInfinity) return x;
      return sum_again<kTile, RowUse::kAll, Config::kSmoothSummary>(rows, tile, column + e);
    };
    return {finite(sum.x, 0), finite(sum.y, 1), finite(sum.z, 2), finite(sum.w, 3)};
  }

  /// NaN and infinity add nothing: they are the business of their own token.
  template <int kTile, RowUse kUse, bool kSmooth>
  __device__ __forceinline__ float sum_again(const Rows& rows, int tile, int column) const {
    float sum = 0.0f;
#pragma unroll 1
    for (int row = tile * kTile; row < smaller((tile + 1) * kTile, rows.left()); ++row) {
      const float x = rows.template element<kSmooth>(row, column);
      const float length = kUse == RowUse::kAll ? 1.0f : smem_.length[row];
      if (length > 0.0f && fabsf(x) < kInfinity) sum += kUse == RowUse::kUnit ? x * length : x;
    }
    return sum;
  }

  __device__ __forceinline__ void finish_summaries(const Rows& rows) const {
    constexpr int kTiles = kTilesOfBlock;
    if (has_few_rows<Config>(rows.args())) {  // the warps of a tile share out the rows
      multiply_summary<Layout::kWarps / kTiles>(rows, warp_ % kTiles, warp_ / kTiles);
      if (kStay && warp_ < kTiles) write_summary(rows, warp_);
    } else if (warp_ < kTiles) {
      finish_summary(rows, warp_);
    }
  }

  /// Summaries of one warp's tile, or what becomes of them where few rows ask.
  __device__ __forceinline__ void finish_summary(const Rows& rows, int tile) const {
    if constexpr (Config::kRoundsSummary) {
      write_cell(rows, tile);
    } else if (has_few_rows<Config>(rows.args())) {
      multiply_summary<1>(rows, tile, 0);
      if (kStay) write_summary(rows, tile);
    } else {
      write_summary(rows, tile);
    }
  }

  static constexpr int kQuads = ceil_div(kHeadDim, 128);
  /// Known tiles of a block: no fewer than it has tokens for, so that blocks are enough for all.
  static constexpr int kShareTiles = larger(kKnownTiles * Layout::kWarps, kTilesOfBlock);
  static constexpr int kMeansAtOnce = 4;  ///< tiles whose means are read together

  __device__ __forceinline__ static void read_means(SummaryQuad (&means)[kQuads],
                                                    const float* summaries, int tile) {
#pragma unroll
    for (int n = 0; n < kQuads; ++n) {
      const int column = 128 * n + 4 * lane_index();
      means[n].column = column < kHeadDim ? column : -1;
      if (column < kHeadDim)
        means[n].x = *reinterpret_cast<const float4*>(
            summaries + static_cast<long long>(tile) * kHeadDim + column);
    }
  }
  /// The means of a tile that has tokens, by a whole warp.
  __device__ __forceinline__ void means_of_tile(SummaryQuad (&means)[kQuads], const Rows& rows,
                                                int tile) const {
    constexpr int kTile = Config::kSummaryTile;
    const auto tokens = static_cast<float>(smaller(kTile, rows.left() - tile * kTile));
#pragma unroll
    for (int n = 0; n < kQuads; ++n) {
      const int column = 128 * n + 4 * lane_index();
      means[n].column = column < kHeadDim ? column : -1;
      if (column >= kHeadDim) continue;
      const float4 sum = four_sums<kTile>(rows, tile, column);
      means[n].x = {sum.x / tokens, sum.y / tokens, sum.z / tokens, sum.w / tokens};
    }
  }

  __device__ __forceinline__ void write_summary(const Rows& rows, int tile) const {
    if (tile * Config::kSummaryTile >= rows.left()) return;
    SummaryQuad means[kQuads];
    means_of_tile(means, rows, tile);
    float* const summary =
        head_summaries(rows) +
        static_cast<long long>(rows.first() / Config::kSummaryTile + tile) * kHeadDim;
#pragma unroll
    for (int n = 0; n < kQuads; ++n) {
      if (means[n].column >= 0) *reinterpret_cast<float4*>(summary + means[n].column) = means[n].x;
    }
  }

  /// Of the tiles of the block's head.
  __device__ __forceinline__ static float* head_summaries(const Rows& rows) {
    if constexpr (kStay) return summaries_of_head<Config>(rows.args(), rows.head(), kHeadDim);
    return rows.side().summary + static_cast<long long>(rows.head()) * rows.side().tiles * kHeadDim;
  }

  /// With every kRowStep-th row from `first_row` on.
  template <int kRowStep>
  __device__ __forceinline__ void multiply_summary(const Rows& rows, int tile,
                                                   int first_row) const {
    if constexpr (scores_few_rows<Config>()) {
      if (tile * Config::kSummaryTile >= rows.left()) return;
      SummaryQuad means[1][kQuads];
      means_of_tile(means[0], rows, tile);
      const int of_head = rows.first() / Config::kSummaryTile + tile;
      multiply_means<kRowStep>(rows, of_head, 1, of_head + 1, means, first_row);
    }
  }
  /// As multiply_few_rows.
  template <int kRowStep, int kTiles>
  __device__ __forceinline__ void multiply_means(const Rows& rows, int first, int step, int end,
                                                 const SummaryQuad (&means)[kTiles][kQuads],
                                                 int first_row) const {
    if constexpr (scores_few_rows<Config>()) {
      const float* const queries = means_of_few_rows<Config>(rows.args(), rows.head());
      multiply_few_rows<Config, kRowStep>(
          rows.args(), rows.head(), first, step, end, means, first_row,
          [&](int row, int column) { return elements_of_row<Config>(queries, row, column); });
    }
  }

  __device__ __forceinline__ void write_similarity(const Rows& rows, int tile) const {
    constexpr int kTile = Config::kSimilarityTile;
    if (tile * kTile >= rows.left()) return;
    int tokens = 0;  // that have a direction
    float longest = 0.0f;
    for (int row = tile * kTile + lane_index(); row < (tile + 1) * kTile; row += 32) {
      tokens += smem_.length[row] > 0.0f;
      if (Config::kGramMax) longest = fmaxf(longest, smem_.length[row]);
    }
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      tokens += __shfl_xor_sync(kAllLanes, tokens, lanes);
      longest = fmaxf(longest, __shfl_xor_sync(kAllLanes, longest, lanes));
    }
    float square = 0.0f;
    for (int column = lane_index(); column < kHeadDim; column += 32) {
      float mean = column_sum<kTile, kSimilarityRows, Config::kSmooth>(rows, smem_.similarity, tile,
                                                                       column) /
                   static_cast<float>(tokens);
      if (Config::kGramMax) mean /= longest;  // the largest of the Gram matrix is longest^2
      square = fmaf(mean, mean, square);
    }
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) square += __shfl_xor_sync(kAllLanes, square, lanes);
    if (lane_index() != 0) return;
    const PrepareSide& side = rows.side();
    side.similarity[static_cast<long long>(rows.head()) * side.tiles + rows.first() / kTile +
                    tile] = tokens == 0 ? -kInfinity : square;
  }

  Smem& smem_;
  int warp_;
};

}  // namespace lacuna
