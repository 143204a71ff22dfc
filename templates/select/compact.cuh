// From bits of kept tiles to what attend follows: ascending lists of its tiles, and the order in
// which blocks take rows, longest list first. Rows that a block takes together are one there.
#pragma once

#include "args/predict_args.cuh"
#include "pipeline/tile_walk.cuh"
#include "select/keep/team.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

/// The kept bits of one work tile, word by word; of all query heads of the KV head if
/// kSharedHeads.
template <bool kSharedHeads, class Args>
class KeptRow {
 public:
  __device__ __forceinline__ KeptRow(const Args& args, int b, int h, int i)
      : heads_(kSharedHeads ? args.attend.heads_per_kv : 1),
        head_words_(static_cast<long long>(args.predict.keep_q_tiles) * args.predict.keep_words) {
    const int first = h - h % heads_;
    row_ = args.predict.kept + (static_cast<long long>(b) * args.attend.n_h + first) * head_words_ +
           static_cast<long long>(i) * args.predict.keep_words;
  }

  __device__ __forceinline__ u32 word(int number) const {
    u32 bits = 0;
    for (int head = 0; head < heads_; ++head) bits |= row_[head * head_words_ + number];
    return bits;
  }

 private:
  const unsigned* row_;
  int heads_;
  long long head_words_;
};

/// The work tile with this number; the order in which attend takes rows does not exist yet.
template <class Config>
__device__ __forceinline__ WorkTile numbered_row(const AttendArgs& args, int number) {
  const int head = number / args.q_tiles;
  return work_tile<Config>(args, head, number - head * args.q_tiles);
}

/// list_indices and list_counts of args.attend, which attend reads; a warp takes a work tile.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void compact_lists(const Args& args) {
  static_assert(Config::kKeepQ % Config::kTileQ == 0 && Config::kKeepK % Config::kTileK == 0,
                "a tile of the bits is whole tiles of attend");
  const AttendArgs& attend = args.attend;
  const int number = block_index() * (Config::kThreads / 32) + warp_index();
  if (number >= attend.n_b * attend.n_h * attend.q_tiles) return;
  const WorkTile row = numbered_row<Config>(attend, number);
  const KeptRow<Config::kSharedHeads, Args> kept(args, row.b, row.h, row.q0 / Config::kKeepQ);
  int* const list = const_cast<int*>(attend.list_indices) + row.index() * attend.list_capacity;
  constexpr int kTilesOfBit = Config::kKeepK / Config::kTileK;
  int count = 0;
  u32 words = 0;  // a lane has one of 32, which are loaded together
#pragma unroll 1
  for (int first = 0; first < attend.k_tiles; first += 32) {
    const int word = first / (32 * kTilesOfBit);
    if (first % (32 * 32 * kTilesOfBit) == 0)
      words = word + lane_index() < args.predict.keep_words ? kept.word(word + lane_index()) : 0;
    const u32 bits = __shfl_sync(kAllLanes, words, word % 32);
    const int j = first + lane_index();
    const int k0 = j * Config::kTileK;
    const int k1 = smaller(k0 + Config::kTileK - 1, attend.n_k - 1);
    bool listed = j < attend.k_tiles && (bits >> j / kTilesOfBit % 32 & 1u) != 0;
    if (!__any_sync(kAllLanes, listed)) continue;
    bool full = k1 - k0 == Config::kTileK - 1;
    if constexpr (asks_pairs<Config>()) {
      const ClassWords known = read_classes<Config>(args, row.b, row.h, row.i, first / 32);
      listed = listed && (known.visible >> lane_index() & 1u) != 0;
      full = (known.full >> lane_index() & 1u) != 0;
    } else if (Config::kHasMask && listed) {
      listed = Hooks::tile_visible(args, row.q0, row.q1, k0, k1, row.h, row.b);
      full = full && Hooks::tile_full(args, row.q0, row.q1, k0, k1, row.h, row.b);
    }
    const int place = WarpTeam().count_before(listed, count);
    if (listed && place < attend.list_capacity) {
      list[place] = static_cast<int>(static_cast<u32>(j) | (full ? 0u : TileRef::kNeedsMask));
    }
  }
  if (lane_index() == 0) {
    const_cast<int*>(attend.list_counts)[row.index()] = smaller(count, attend.list_capacity);
  }
}

/// Of order_rows.
template <int kThreads>
struct OrderSmem {
  static constexpr int kBins = kOrderBins;
  int rows[kBins];    ///< of a length, from the longest on; then of longer lists
  int before[kBins];  ///< of a length, in front of the block's rows
  int own[kThreads];  ///< lengths of the block's rows
  ReduceScratch reduce;
};

/// predict.row_order: each thread finds the place of one row, behind all longer lists and those of
/// its length with a lower number. Every block counts the rows of each length. Of rows that a block
/// takes together, Config::kWorkTiles, the mean counts.
template <class Config, class Args>
class RowOrder {
  using Smem = OrderSmem<Config::kThreads>;
  static_assert(sizeof(Smem) == order_smem_bytes(Config::kThreads) &&
                sizeof(Smem) <= Config::kSmemBytes && Config::kThreads % 4 == 0);

 public:
  __device__ __forceinline__ RowOrder(const Args& args, unsigned char* smem)
      : args_(args),
        smem_(*reinterpret_cast<Smem*>(smem)),
        rows_(args.attend.n_b * args.attend.n_h * blocks_of_head<Config::kWorkTiles>(args.attend)),
        first_(block_index() * Config::kThreads) {}

  __device__ __forceinline__ void run() {
    const int row = first_ + thread_index();
    const int length = row < rows_ ? length_of(row) : -1;
    smem_.own[thread_index()] = length;
    const int bins = args_.attend.list_capacity + 1;
    const bool are_counted = rows_ > Config::kThreads && bins <= Smem::kBins;
    const int ahead = are_counted ? count_lengths(bins, length) : compare_lengths(length);
    if (row < rows_) args_.predict.row_order[ahead + own_ahead(length)] = row;
  }

 private:
  __device__ __forceinline__ int length_of(int row) const {
    if constexpr (Config::kWorkTiles == 1) return args_.attend.list_counts[row];
    const int rows_of_head = blocks_of_head<Config::kWorkTiles>(args_.attend);
    const int head = row / rows_of_head, first = (row - head * rows_of_head) * Config::kWorkTiles;
    const int* lengths = args_.attend.list_counts + head * args_.attend.q_tiles;
    int sum = 0;
    for (int i = first; i < smaller(first + Config::kWorkTiles, args_.attend.q_tiles); ++i)
      sum += lengths[i];
    return ceil_div(sum, Config::kWorkTiles);
  }

  /// Rows of other blocks that come before one of this length.
  __device__ __forceinline__ int count_lengths(int bins, int length) {
    for (int bin = thread_index(); bin < bins; bin += Config::kThreads) {
      smem_.rows[bin] = 0;
      smem_.before[bin] = 0;
    }
    __syncthreads();
    constexpr int kAtOnce = 8;  // are loaded before the first is counted
#pragma unroll 1
    for (int first = 0; first < rows_; first += kAtOnce * Config::kThreads) {
      int bin[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const int other = first + n * Config::kThreads + thread_index();
        bin[n] = other < rows_ ? bins - 1 - length_of(other) : -1;
      }
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) count(first + n * Config::kThreads, bin[n]);
    }
    __syncthreads();
    const int share = ceil_div(bins, Config::kThreads), begin = thread_index() * share;
    const int end = smaller(begin + share, bins);
    int sum = 0, total = 0;
    for (int bin = begin; bin < end; ++bin) sum += smem_.rows[bin];
    int longer = block_sum_before<Config::kThreads>(sum, total, smem_.reduce);
    for (int bin = begin; bin < end; ++bin) {
      const int here = smem_.rows[bin];
      smem_.rows[bin] = longer;
      longer += here;
    }
    __syncthreads();
    if (length < 0) return 0;
    const int bin = bins - 1 - length;
    return smem_.rows[bin] + smem_.before[bin];
  }

  /// Rows from `first` on, one a thread. Often all of a warp have one length.
  __device__ __forceinline__ void count(int first, int bin) {
    const u32 takes_part = __ballot_sync(kAllLanes, bin >= 0);
    const bool is_same = bin == __shfl_sync(kAllLanes, bin, 0);
    const bool all_same = __all_sync(kAllLanes, is_same) != 0;
    if (bin < 0 || (all_same && lane_index() != 0)) return;
    const int rows = all_same ? __popc(takes_part) : 1;
    atomicAdd(&smem_.rows[bin], rows);
    if (first < first_) atomicAdd(&smem_.before[bin], rows);
  }

  __device__ __forceinline__ int compare_lengths(int length) {
    int ahead = 0;
    __syncthreads();  // own lengths
    for (int first = 0; first < rows_; first += Config::kThreads) {
      if (first == first_) {
        for (int n = 0; n < Config::kThreads; ++n) ahead += smem_.own[n] > length;
        continue;
      }
      // Rows of an earlier block win ties, those of a later block lose them.
      const int beyond = first < first_ ? length - 1 : length;
      const int end = smaller(first + Config::kThreads, rows_);
      for (int other = first; other < end; ++other) {
        ahead += length_of(other) > beyond;
      }
    }
    return ahead;
  }

  /// Rows of this block with the same length and a lower number.
  __device__ __forceinline__ int own_ahead(int length) const {
    int ahead = 0;
#pragma unroll 8
    for (int n = 0; n < Config::kThreads; n += 4) {
      const int4 four = *reinterpret_cast<const int4*>(smem_.own + n);
      const int left = thread_index() - n;
      ahead += (four.x == length && left > 0) + (four.y == length && left > 1) +
               (four.z == length && left > 2) + (four.w == length && left > 3);
    }
    return ahead;
  }

  const Args& args_;
  Smem& smem_;
  const int rows_, first_;
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void order_rows(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  RowOrder<Config, Args>(args, block_smem).run();
}

}  // namespace lacuna
