// What an estimate over cells makes of logits: the numbers of a tile as one, and those of a row.
#pragma once

#include "select/cells/cell_shape.cuh"
#include "select/tokens/token_reduce.cuh"

namespace lacuna {

/// Which numbers are wanted of logits.
template <class Config>
struct CellNumbers {
  using Shape = CellShape<Config>;
  static constexpr bool kIsPlain = Config::kNormalise == Normalise::kNone;
  static constexpr Merge kWeights = !Config::kSums ? Merge::kLargest
                                    : kIsPlain     ? Merge::kSumOfPresent
                                                   : Merge::kSum;
  static constexpr Merge kScores = Config::kSums ? Merge::kSumOfPresent : Merge::kLargest;
  /// Fewer than log-sums tell of a NaN, which no mean has.
  static constexpr bool kMindsNaN = Shape::kIsRowMax && !Config::kCellsAreMeans;
  /// Tiles of eight columns, of which only the largest logit is kept: largest_of_eight.
  static constexpr bool kTakesLargestOfEight = Shape::kTileColumns == 8 && !Shape::kHasLogSums &&
                                               !Config::kSums && !kMindsNaN &&
                                               Shape::kBlocks % 8 == 0;
  /// The largest logit of each row is found while its tiles are reduced: RowLargest.
  static constexpr bool kFindsRowLargest =
      kTakesLargestOfEight && Shape::kIsRowMax && Shape::kHoldsQueries && !kExcludesTiles<Config>;
};

struct TileSums {
  float log_sum;  ///< ln of the sum of exp(logit); -inf of nothing, NaN if a logit is
  float logits;   ///< their sum or the largest
};

/// Over the numbers of kLanes neighbouring lanes, to all of them.
template <class Config, int kLanes, int kNumbers>
__device__ __forceinline__ TileSums reduce_cells(const float (&numbers)[kNumbers]) {
  using Shape = CellShape<Config>;
  using Numbers = CellNumbers<Config>;
  float largest = numbers[0], total = numbers[0];
  bool is_number = true;
#pragma unroll
  for (int m = 0; m < kNumbers; ++m) {
    if (Numbers::kMindsNaN) is_number = is_number && numbers[m] == numbers[m];
    if (m == 0) continue;
    largest = fmaxf(largest, numbers[m]);
    total = merge_two<Numbers::kScores>(total, numbers[m]);
  }
#pragma unroll
  for (int lanes = 1; lanes < kLanes; lanes *= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, lanes));
    if constexpr (Shape::kHasLogits)
      total = merge_two<Numbers::kScores>(total, __shfl_xor_sync(kAllLanes, total, lanes));
  }
  if constexpr (Numbers::kMindsNaN) {
    if (__any_sync(kAllLanes, !is_number)) {  // of the lanes that share the numbers
#pragma unroll
      for (int lanes = 1; lanes < kLanes; lanes *= 2)
        is_number = __shfl_xor_sync(kAllLanes, is_number, lanes) && is_number;
      if (!is_number) total = __int_as_float(0x7fffffff);
    }
  }
  if constexpr (!Shape::kHasLogSums) return {0.0f, total};
  const float offset = largest > -kInfinity ? largest * kLog2E : 0.0f;
  float sum = 0.0f;
#pragma unroll
  for (int m = 0; m < kNumbers; ++m) sum += exp2_approx(fmaf(numbers[m], kLog2E, -offset));
#pragma unroll
  for (int lanes = 1; lanes < kLanes; lanes *= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
  return {(offset + log2_approx(sum)) * kLn2, total};
}

/// Reduces the whole tiles that a warp has scores of, for the lane's row in a half of the 16. The
/// numbers of the lane's first tile go to row[0], those of later tiles behind it, as far as there
/// are `left` tiles; the reduced logits lie `logits` numbers behind the log-sums. Four lanes share
/// a row: they have a tile together, or some tiles each.
template <class Config, int kBlocks>
__device__ __forceinline__ void put_tiles(const float (&scores)[kBlocks][4], int half, float* row,
                                          int left, int logits) {
  using Shape = CellShape<Config>;
  constexpr int kTile = Shape::kTileColumns;
  constexpr int kBlocksOfTile = kTile < 8 ? 1 : kTile / 8;
  constexpr int kLanes = kTile < 8 ? larger(kTile / 2, 1) : 4;  // of a tile
  constexpr int kNumbers = kTile == 1 ? 1 : 2 * kBlocksOfTile;  // of a lane
#pragma unroll
  for (int n = 0; n < kBlocks; n += kBlocksOfTile) {
#pragma unroll
    for (int begin = 0; begin < 2 * kBlocksOfTile; begin += kNumbers) {
      float numbers[kNumbers];
#pragma unroll
      for (int m = 0; m < kNumbers; ++m) numbers[m] = scores[n + m / 2][half * 2 + (begin + m) % 2];
      const TileSums tile = reduce_cells<Config, kLanes>(numbers);
      const int j = (n * 8 + begin) / kTile;
      if (lane_index() % kLanes != n / kBlocksOfTile % kLanes || j >= left) continue;
      if constexpr (Shape::kHasLogSums) row[j] = tile.log_sum;
      if constexpr (Shape::kHasLogits) row[logits + j] = tile.logits;
    }
  }
}

/// The largest products of eight tiles of eight columns, block `begin` and on, of the lane's row in
/// a half of the 16: each of the four lanes that share a row ends up with tiles 2 t and 2 t + 1 of
/// the eight, so that four lanes write 32 bytes of a row at once. In each exchange a lane hands
/// over the tiles of the lanes on the other side.
template <int kBlocks>
__device__ __forceinline__ void largest_of_eight(float (&own)[2], const float (&scores)[kBlocks][4],
                                                 int begin, int half) {
  const bool upper = (lane_index() & 2) != 0, odd = (lane_index() & 1) != 0;
  float tiles_of_pair[4];
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const float(&first)[4] = scores[begin + n], (&second)[4] = scores[begin + n + 4];
    const float low = fmaxf(first[2 * half], first[2 * half + 1]);
    const float high = fmaxf(second[2 * half], second[2 * half + 1]);
    const float given = __shfl_xor_sync(kAllLanes, upper ? low : high, 2);
    tiles_of_pair[n] = fmaxf(upper ? high : low, given);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const float low = tiles_of_pair[n], high = tiles_of_pair[n + 2];
    const float given = __shfl_xor_sync(kAllLanes, odd ? low : high, 1);
    own[n] = fmaxf(odd ? high : low, given);
  }
}

/// The largest logit so far of each row of a block, in shared memory: registers are short while
/// products are made. A lane has its own of each row; of_row combines those of all lanes of a
/// row and of all warps that took its columns.
template <class Config>
class RowLargest {
  using Shape = CellShape<Config>;

 public:
  __device__ __forceinline__ explicit RowLargest(typename Shape::Tail& tail) : tail_(tail) {}

  __device__ __forceinline__ float& of_lane(int warp, int set, int half, int lane) const {
    constexpr bool kExists = CellNumbers<Config>::kFindsRowLargest;
    return tail_.largest[kExists ? ((warp * Shape::kSets + set) * 2 + half) * 32 + lane : 0];
  }

  __device__ __forceinline__ void forget(int warp) const {
#pragma unroll
    for (int set = 0; set < Shape::kSets; ++set) {
#pragma unroll
      for (int half = 0; half < 2; ++half) of_lane(warp, set, half, lane_index()) = -kInfinity;
    }
  }

  __device__ __forceinline__ float of_row(int r) const {
    constexpr int kWarpRows = Shape::kSets * 16;
    const int set = r % kWarpRows / 16, half = r % 16 / 8, lane = r % 8 * 4;
    float largest = -kInfinity;
#pragma unroll
    for (int split = 0; split < Shape::kSplits; ++split) {
      const int warp = r / kWarpRows * Shape::kSplits + split;
#pragma unroll
      for (int n = 0; n < 4; ++n) largest = fmaxf(largest, of_lane(warp, set, half, lane + n));
    }
    return largest;
  }

 private:
  typename Shape::Tail& tail_;
};

/// ln of the sum of a row's exponentials from the log-sums of its tiles, by a whole warp;
/// counts(j): does tile j? A lane reads several at once, so that it waits once for all of them.
template <class Counts>
__device__ __forceinline__ float log_sum_of_row(const float* log_sums, int tiles,
                                                const Counts& counts) {
  constexpr int kAtOnce = 4;
  RowSum sum;
#pragma unroll 1
  for (int first = lane_index(); first < tiles; first += 32 * kAtOnce) {
    float found[kAtOnce], largest = -kInfinity, weight = 0.0f;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int j = first + 32 * n;
      found[n] = -kInfinity;
      if (j < tiles && counts(j)) found[n] = log_sums[j];
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) largest = fmaxf(largest, found[n]);
    const float offset = largest == -kInfinity ? 0.0f : largest * kLog2E;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) weight += exp2_approx(fmaf(found[n], kLog2E, -offset));
    sum.merge(largest, weight);
  }
  sum.template merge_lanes<32>();
  return sum.log2_sum() * kLn2;
}

/// The row's largest logit from those of its tiles; -inf of a row with a NaN.
template <class Counts>
__device__ __forceinline__ float largest_of_row(const float* largest_of_tiles, int tiles,
                                                const Counts& counts) {
  float largest = -kInfinity;
  bool is_number = true;
#pragma unroll 1
  for (int j = lane_index(); j < tiles; j += 32) {
    if (!counts(j)) continue;
    const float of_tile = largest_of_tiles[j];
    largest = fmaxf(largest, of_tile);
    is_number = is_number && of_tile == of_tile;
  }
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2)
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, lanes));
  return __all_sync(kAllLanes, is_number) ? largest : -kInfinity;
}

}  // namespace lacuna
