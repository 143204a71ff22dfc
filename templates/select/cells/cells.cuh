// `estimate` with cells of tokens as rows and columns, a pair's logit the mean over the tokens of a
// cell (antidiagonals) or the product of the cells' means; then `select`.
// A product of matrices whose rows are several query tiles of a head, along the keys once: of each
// row and key tile the log-sum of its logits and what they are reduced to, in scratch memory; those
// of few rows are there (cell_shares.cuh). Then each row has its log-sum-exp, each tile of a query
// tile its p, and warps decide short work tiles, a query tile each, or the block one by one.
//
// Stages: cp.async, kStages - 1 parts ahead. A part's barrier says both that all its bytes are
// there and that nobody reads the stage of the part before, which is loaded next.
#pragma once

#include "arch/copy/tma.cuh"
#include "select/cells/cell_loader.cuh"
#include "select/cells/cell_product.cuh"
#include "select/cells/cell_reduce.cuh"
#include "select/cells/cell_rows.cuh"
#include "select/cells/cell_shape.cuh"
#include "select/tokens/token_logits.cuh"
#include "select/tokens/token_reduce.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class CellBlock {
  using Shape = CellShape<Config>;
  using Product = typename Config::Product::template Of<Config>;
  using Loader = CellLoader<Config, Args>;
  using Logits = TokenLogits<Shape, Config, Hooks, Args, 16, false>;
  using Scores = float[Shape::kBlocks][4];
  using Sums = typename Product::Sums;
  using Numbers = CellNumbers<Config>;
  using Largest = RowLargest<Config>;
  using Few = FewCellRows<Config>;
  /// About, on the whole GPU; few rows that wait for others do better with all heads at a time.
  static constexpr int kBlocksAtOnce = Config::kCellsAreMeans ? kMostBlocks : 256;

 public:
  __device__ __forceinline__ CellBlock(const Args& args, unsigned char* smem)
      : args_(args),
        smem_(smem),
        tail_(*reinterpret_cast<typename Shape::Tail*>(smem + Shape::kTailOffset)),
        warp_(warp_index()) {}

  __device__ __forceinline__ void run() {
    if (has_few_cell_rows<Config>(args_)) {
      take_groups([&] {
        const Logits logits(args_, group_);
        const auto counts = [&](const KeepRow& row, int j) { return has_values(logits, row, j); };
        const auto plane_of = [&](int number) { return plane(number); };
        Few::take_rows(args_, group_, tail_.offset, plane_of, counts, tail_.select.reduce);
      });
    } else {
      take_groups([&] {
        multiply();
        __syncthreads();
        find_offsets();
      });
    }
  }

 private:
  /// find(): numbers and offsets of the rows. Code for each of two: registers are short.
  template <class Find>
  __device__ __forceinline__ void take_groups(const Find& find) {
    const int groups_of_head = ceil_div(args_.predict.keep_q_tiles, Shape::kQueryTiles);
    const int groups = args_.attend.n_b * args_.attend.n_h * groups_of_head;
    for (int number = block_index(); number < groups; number += kMostBlocks) {
      locate(number, groups_of_head);
      find();
      __syncthreads();
      decide();
    }
  }

  __device__ __forceinline__ KeepRow work_tile_index(int i) const {
    return keep_row_of<Config>(args_, group_.b, group_.h, i);
  }

  /// As many heads at a time as the blocks that run at once can have, so that their tokens stay in
  /// the L2; under a causal mask late rows are the longest: they come first.
  __device__ __forceinline__ void locate(int number, int groups_of_head) {
    const int heads = args_.attend.n_b * args_.attend.n_h;
    const int most = larger(kBlocksAtOnce / groups_of_head, 1);
    const int first_head = number / (most * groups_of_head) * most;
    const int together = smaller(most, heads - first_head);
    const int place = number - first_head * groups_of_head;
    const int head = first_head + place % together;
    const int b = head / args_.attend.n_h;
    const int i = (groups_of_head - 1 - place / together) * Shape::kQueryTiles;
    last_tile_ = smaller(i + Shape::kQueryTiles, args_.predict.keep_q_tiles) - 1;
    group_ = keep_row_of<Config>(args_, b, head - b * args_.attend.n_h, i);
    group_.q1 = work_tile_index(last_tile_).q1;
  }

  __device__ __forceinline__ int tiles() const { return args_.predict.keep_k_tiles; }
  __device__ __forceinline__ int columns() const {
    return ceil_div(args_.attend.n_k, Shape::kCellK);
  }
  /// A number of each tile, in the block's scratch.
  __device__ __forceinline__ float* plane(int number) const {
    const long long first = static_cast<long long>(block_index()) * Shape::kPlanes + number;
    return args_.predict.scores + first * tiles();
  }

  // products

  // A step of the walk along the keys: kParts times the number of a chunk, and a part of its
  // products.

  __device__ __forceinline__ static int column_of(int step) {
    return step / Shape::kParts * Shape::kColumns;
  }
  /// The first step of the first chunk from this one on with anything to add up, or past the end.
  __device__ __forceinline__ static int first_step(const Logits& logits, int chunk) {
    const int first = logits.first_possible(chunk * Shape::kColumns);
    return ceil_div(first, Shape::kColumns) * Shape::kParts;
  }
  __device__ __forceinline__ static int next_step(const Logits& logits, int step) {
    const int next = step + 1;
    return next % Shape::kParts != 0 ? next : first_step(logits, next / Shape::kParts);
  }

  __device__ __forceinline__ void multiply() const {
    const Logits logits(args_, group_);
    const Loader loader(args_, group_);
    if constexpr (Shape::kHoldsQueries) loader.load_queries(shared_address(smem_));
    int steps[Shape::kStages] = {first_step(logits, 0)};  // this one, those under way, the next
#pragma unroll
    for (int n = 0; n < Shape::kStages - 1; ++n) {
      load(loader, steps[n], n);
      steps[n + 1] = next_step(logits, steps[n]);
    }
    Sums sums;
    clear_all(sums);
    if constexpr (Numbers::kFindsRowLargest) Largest(tail_).forget(warp_);
    for (int stage = 0; column_of(steps[0]) < columns(); stage = next_stage(stage)) {
      cp_async_wait<Shape::kStages - 2>();
      if constexpr (Shape::kByWgmma) fence_proxy_async();
      __syncthreads();
      const int part = steps[0] % Shape::kParts;
      const u32 rows = query_rows(stage, part), keys = key_rows(stage);
      Product::issue(sums, rows, keys, part);
      load(loader, steps[Shape::kStages - 1], stage == 0 ? Shape::kStages - 1 : stage - 1);
      Product::finish(sums, rows, keys, part);
      if (part == Shape::kParts - 1) {
        take_chunk(logits, sums, column_of(steps[0]));
        clear_all(sums);
      }
#pragma unroll
      for (int n = 0; n < Shape::kStages - 1; ++n) steps[n] = steps[n + 1];
      steps[Shape::kStages - 1] = next_step(logits, steps[Shape::kStages - 1]);
    }
    cp_async_wait<0>();
  }

  __device__ __forceinline__ static int next_stage(int stage) {
    return stage == Shape::kStages - 1 ? 0 : stage + 1;
  }
  __device__ __forceinline__ static void clear_all(Sums& sums) {
#pragma unroll
    for (int set = 0; set < Shape::kSets; ++set) clear(sums[set]);
  }

  /// By mma.sync two blocks share a multiprocessor's registers: there addresses are worked out
  /// again for each part, and `loader` is for the queries alone.
  __device__ __forceinline__ void load(const Loader& loader, int step, int stage) const {
    if constexpr (Shape::kByWgmma) {
      load_by(loader, step, stage);
    } else {
      load_by(Loader(args_, group_), step, stage);
    }
  }
  __device__ __forceinline__ void load_by(const Loader& loader, int step, int stage) const {
    if (column_of(step) < columns())
      loader.load(column_of(step), step % Shape::kParts, stage_of(stage));
    cp_async_commit();
  }

  /// The rows of this warp, and which columns of a chunk it takes.
  __device__ __forceinline__ int first_row() const {
    return warp_ / Shape::kSplits * (Shape::kSets * 16);
  }
  __device__ __forceinline__ int first_column() const {
    return warp_ % Shape::kSplits * Shape::kSplitColumns;
  }
  __device__ __forceinline__ u32 stage_of(int stage) const {
    return shared_address(smem_) +
           static_cast<u32>(Shape::kStagesOffset + stage * Shape::kStageBytes);
  }
  /// Rows that the product takes: those of the warp, by wgmma those of its warpgroup.
  __device__ __forceinline__ u32 query_rows(int stage, int part) const {
    const int first = Shape::kByWgmma ? warp_ / 4 * kWarpgroupRows : first_row();
    const u32 rows = static_cast<u32>(first * (Shape::kDepth * 2));
    if constexpr (Shape::kHoldsQueries)
      return shared_address(smem_) + static_cast<u32>(part * Shape::kQueryBytes) + rows;
    return stage_of(stage) + rows;
  }
  __device__ __forceinline__ u32 key_rows(int stage) const {
    return stage_of(stage) +
           static_cast<u32>(Shape::kKeysOffset + first_column() * (Shape::kDepth * 2));
  }

  // what remains of a chunk

  __device__ __forceinline__ void take_chunk(const Logits& logits, const Sums& sums,
                                             int first) const {
    const int column = first + first_column();
    // This lane's place in the row's numbers, and how many there are from it on.
    const int place = (column + lane_index() % 4 * 2) / Shape::kTileColumns, left = tiles() - place;
#pragma unroll
    for (int set = 0; set < Shape::kSets; ++set) {
      const int number = first_row() / 16 + set;
      Scores scores;
      if constexpr (Numbers::kTakesLargestOfEight) {
        copy_blocks(scores, sums[set]);  // the scale, a positive number, waits for the largest
      } else {
        logits.scale(scores, sums[set], number, column);
      }
      // Asked for each set, like the row's place: registers are short.
      if (logits.is_partial(first)) logits.hide(scores, number, column, nullptr, 0);
      float* row = plane(number * 16 + lane_index() / 4) + place;
#pragma unroll
      for (int half = 0; half < 2; ++half, row += 8 * tiles())
        take_row(scores, set, half, row, left);
    }
  }

  /// Of the lane's row in each half of the 16, to the row's numbers from this lane's place on, of
  /// which there are `left`; four lanes share a row, and a tile or have some each.
  __device__ __forceinline__ void take_row(const Scores& scores, int set, int half, float* row,
                                           int left) const {
    if constexpr (Numbers::kTakesLargestOfEight) {
      take_largest(scores, half, row, left, Largest(tail_).of_lane(warp_, set, half, lane_index()));
      return;
    }
    put_tiles<Config>(scores, half, row, left, Shape::kLogitsPlane * tiles());
  }

  __device__ __forceinline__ void take_largest(const Scores& scores, int half, float* row, int left,
                                               float& largest) const {
    const float scale = args_.attend.scale * Config::kTemperature / Shape::kProducts;
#pragma unroll
    for (int begin = 0; begin < Shape::kBlocks; begin += 8) {
      float own[2];
      largest_of_eight(own, scores, begin, half);
      own[0] *= scale, own[1] *= scale;
      if constexpr (Numbers::kFindsRowLargest) largest = fmaxf(largest, fmaxf(own[0], own[1]));
      const int first = begin + lane_index() % 4 * 2;
      float* const to = row + Shape::kLogitsPlane * tiles() + first;
      if (tiles() % 2 == 0) {  // pairs of tiles lie on 8 bytes, and both are there
        if (first < left) *reinterpret_cast<float2*>(to) = {own[0], own[1]};
      } else {
        if (first < left) to[0] = own[0];
        if (first + 1 < left) to[1] = own[1];
      }
    }
  }

  // rows

  /// Did the walk along the keys reach this tile, and does it count?
  __device__ __forceinline__ bool has_values(const Logits& logits, const KeepRow& row,
                                             int j) const {
    const int column = j * Shape::kTileColumns;
    return logits.is_possible(column - column % Shape::kColumns) &&
           !excludes_tile<Config, Hooks>(args_, row, j);
  }

  /// What a row's logits are reduced by; +inf for rows that take no part: rows past the end, rows
  /// without a weight, rows with a NaN, which hurts no other row.
  __device__ __forceinline__ void find_offsets() const {
    const Logits logits(args_, group_);
    const int rows = ceil_div(group_.q1 - group_.q0 + 1, Shape::kCell);
    if constexpr (Numbers::kFindsRowLargest) {
      for (int r = thread_index(); r < Shape::kRows; r += Config::kThreads) {
        const float own = Largest(tail_).of_row(r);
        tail_.offset[r] = r < rows && own > -kInfinity ? own : kInfinity;
      }
      return;
    }
#pragma unroll 1
    for (int r = warp_; r < Shape::kRows; r += Shape::kWarps) {
      float offset = r < rows ? 0.0f : kInfinity;
      if ((Shape::kHasLogSums || Shape::kIsRowMax) && r < rows) {
        const KeepRow row = work_tile_index(group_.i + r / Shape::kWorkTiles);
        const auto counts = [&](int j) { return has_values(logits, row, j); };
        const float own = Shape::kIsRowMax
                              ? largest_of_row(plane(Shape::kLogitsPlane + r), tiles(), counts)
                              : log_sum_of_row(plane(r), tiles(), counts);
        offset = !(own > -kInfinity) ? kInfinity : Numbers::kIsPlain ? 0.0f : own;
      }
      if (lane_index() == 0) tail_.offset[r] = offset;
    }
  }

  // work tiles

  /// Short rows by a warp each, others by the block.
  __device__ __forceinline__ void decide() const {
    if constexpr (Shape::kWarpsDecide) {
      if (tiles() <= kMostWarpTiles) {
        for (int i = group_.i + warp_; i <= last_tile_; i += Shape::kWarps) {
          decide_by_warp(work_tile_index(i));
        }
        __syncthreads();
        return;
      }
    }
    for (int i = group_.i; i <= last_tile_; ++i) decide_by_block(work_tile_index(i));
  }

  __device__ __forceinline__ void decide_by_warp(const KeepRow& row) const {
    auto& own = reinterpret_cast<typename Shape::WarpSmem*>(smem_)[warp_];
    const float share = share_of_row(row);
    WarpRow known;
    for (int first = 0; first < tiles(); first += 32) {
      const int j = first + lane_index();
      const bool sees = j < tiles() && sees_tile<Config, Hooks>(args_, row, j);
      known.add(first, sees, tiles());
      const TileValue value = value_of(row, share, j, sees);
      own.p[j] = value.p;
      if constexpr (Config::kUsesScore) own.score[j] = value.score;
    }
    __syncwarp();
    known.reach = __shfl_sync(kAllLanes, known.reach, 0);  // known to be the same in all lanes
    decide_row_by_warp<Config, Hooks>(args_, row, known, own.p, own.score, own.decision);
  }

  __device__ __forceinline__ void decide_by_block(const KeepRow& row) const {
    const float share = share_of_row(row);
    float* const p = plane(Shape::kResultPlane);
    float* const score = plane(Shape::kResultPlane + 1);
#pragma unroll 1
    for (int j = thread_index(); j < tiles(); j += Config::kThreads) {
      const TileValue value = value_of(row, share, j, true);
      p[j] = value.p;
      if constexpr (Config::kUsesScore) score[j] = value.score;
    }
    __syncthreads();
    decide_row<Config, Hooks>(args_, row, p, score,
                              reinterpret_cast<int*>(plane(Shape::kOrderPlane)),
                              *reinterpret_cast<OrderScratch<Shape::kWarps>*>(smem_), tail_.select);
  }

  /// What a sum over the rows of a query tile is multiplied by.
  __device__ __forceinline__ float share_of_row(const KeepRow& row) const {
    if constexpr (!Config::kSums) return 1.0f;
    const int first = (row.i - group_.i) * Shape::kWorkTiles;
    int count = 0;
#pragma unroll 8
    for (int r = 0; r < Shape::kWorkTiles; ++r) count += tail_.offset[first + r] < kInfinity;
    return count > 0 ? 1.0f / static_cast<float>(count) : 1.0f;
  }

  __device__ __forceinline__ TileValue value_of(const KeepRow& row, float share, int j,
                                                bool exists) const {
    const Logits logits(args_, group_);
    TileValue value = {-kInfinity, kNothing<Numbers::kWeights>};
    if (exists && has_values(logits, row, j))
      take_tile(value, (row.i - group_.i) * Shape::kWorkTiles, j);
    if constexpr (!Config::kSums && !Numbers::kIsPlain) value.p = exp2_approx(value.p);
    value.p *= share;
    return value;
  }

  __device__ __forceinline__ void take_tile(TileValue& value, int first, int j) const {
#pragma unroll 8
    for (int r = first; r < first + Shape::kWorkTiles; ++r) {
      const float offset = tail_.offset[r];
      const bool takes_part = offset < kInfinity;
      float logits = -kInfinity, weight = kNothing<Numbers::kWeights>;
      if constexpr (Shape::kHasLogits) logits = plane(Shape::kLogitsPlane + r)[j];
      if constexpr (Numbers::kIsPlain) {
        weight = logits;
      } else if constexpr (Config::kSums) {
        weight = exp2_approx((plane(r)[j] - offset) * kLog2E);
      } else {
        weight = (logits - offset) * kLog2E;
      }
      if (!takes_part) continue;
      value.p = merge_two<Numbers::kWeights>(value.p, weight);
      value.score = merge_two<Numbers::kScores>(value.score, logits);
    }
  }

  const Args& args_;
  unsigned char* const smem_;
  typename Shape::Tail& tail_;
  const int warp_;
  KeepRow group_ = {};  ///< all query tiles of the block as one, by the first
  int last_tile_ = 0;
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_cells(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  CellBlock<Config, Hooks, Args>(args, block_smem).run();
}

}  // namespace lacuna
