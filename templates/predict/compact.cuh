// From bits of kept tiles to what attend follows: ascending lists of its tiles, and the order in
// which blocks take rows, longest list first.
#pragma once

#include "kernel/predict_args.cuh"
#include "kernel/tile_walk.cuh"

namespace lacuna {

/// The kept bits of one row of tiles, word by word; of all query heads of the KV head if
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
  __device__ __forceinline__ bool keeps(int j) const { return (word(j / 32) >> j % 32 & 1u) != 0; }

 private:
  const unsigned* row_;
  int heads_;
  long long head_words_;
};

/// The row of tiles with this number; the order in which attend takes rows does not exist yet.
template <class Config>
__device__ __forceinline__ TileRow numbered_row(const AttendArgs& args, int number) {
  const int head = number / args.q_tiles;
  TileRow row;
  row.i = number - head * args.q_tiles;
  row.b = head / args.n_h;
  row.h = head - row.b * args.n_h;
  row.q0 = row.i * Config::kTileQ;
  row.q1 = smaller(row.q0 + Config::kTileQ - 1, args.n_q - 1);
  row.q_tiles = args.q_tiles;
  row.n_h = args.n_h;
  return row;
}

/// One row of tiles: list_indices and list_counts of args.attend, which attend reads.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void compact_lists(const Args& args) {
  constexpr int kWarps = Config::kThreads / 32;
  static_assert(Config::kKeepQ % Config::kTileQ == 0 && Config::kKeepK % Config::kTileK == 0,
                "a tile of the bits is whole tiles of attend");
  static_assert(2 * kWarps * 4 <= Config::kSmemBytes);
  extern __shared__ __align__(128) unsigned char block_smem[];
  const AttendArgs& attend = args.attend;
  const TileRow row = numbered_row<Config>(attend, block_index());
  const int own_warp = warp_index();
  const KeptRow<Config::kSharedHeads, Args> kept(args, row.b, row.h, row.q0 / Config::kKeepQ);
  int* list = const_cast<int*>(attend.list_indices) + row.index() * attend.list_capacity;
  int count = 0;  // listed before this round
  for (int round = 0; round * Config::kThreads < attend.k_tiles; ++round) {
    const int j = round * Config::kThreads + thread_index();
    const int k0 = j * Config::kTileK;
    const int k1 = smaller(k0 + Config::kTileK - 1, attend.n_k - 1);
    bool listed = j < attend.k_tiles && kept.keeps(k0 / Config::kKeepK);
    bool full = k1 - k0 == Config::kTileK - 1;
    if (Config::kHasMask && listed) {
      listed = Hooks::tile_visible(args, row.q0, row.q1, k0, k1, row.h, row.b);
      full = full && Hooks::tile_full(args, row.q0, row.q1, k0, k1, row.h, row.b);
    }
    // Two sets of warp counts in turn, so that one barrier a round is enough.
    int* of_warps = reinterpret_cast<int*>(block_smem) + round % 2 * kWarps;
    const u32 votes = __ballot_sync(kAllLanes, listed);
    if (lane_index() == 0) of_warps[own_warp] = __popc(votes);
    __syncthreads();
    int place = count + __popc(votes & ((1u << lane_index()) - 1u));
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      if (warp < own_warp) place += of_warps[warp];
      count += of_warps[warp];
    }
    if (listed && place < attend.list_capacity) {
      list[place] = static_cast<int>(static_cast<u32>(j) | (full ? 0u : TileRef::kNeedsMask));
    }
  }
  if (thread_index() == 0) {
    const_cast<int*>(attend.list_counts)[row.index()] = smaller(count, attend.list_capacity);
  }
}

/// predict.row_order: each thread finds the place of one row by counting the rows that come before
/// it. Longest list first; ties: lower row first.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void order_rows(const Args& args) {
  extern __shared__ __align__(128) unsigned char block_smem[];
  int* lengths = reinterpret_cast<int*>(block_smem);  // of kThreads rows at a time
  static_assert(Config::kThreads * 4 <= Config::kSmemBytes && Config::kThreads % 4 == 0);
  const int rows = args.attend.n_b * args.attend.n_h * args.attend.q_tiles;
  const int row = block_index() * Config::kThreads + thread_index();
  const int length = row < rows ? args.attend.list_counts[row] : 0;
  int place = 0;
  for (int first = 0; first < rows; first += Config::kThreads) {
    const int other = first + thread_index();
    __syncthreads();
    lengths[thread_index()] = other < rows ? args.attend.list_counts[other] : -1;
    __syncthreads();
    // Rows of an earlier block win ties, those of a later block lose them.
    const int beyond = first < block_index() * Config::kThreads ? length - 1 : length;
    const bool is_own = first == block_index() * Config::kThreads;
#pragma unroll 8
    for (int n = 0; n < Config::kThreads; n += 4) {
      const int4 four = *reinterpret_cast<const int4*>(lengths + n);
      place += (four.x > beyond) + (four.y > beyond) + (four.z > beyond) + (four.w > beyond);
    }
    for (int n = 0; is_own && n < thread_index(); ++n) place += lengths[n] == length;
  }
  if (row < rows) args.predict.row_order[place] = row;
}

}  // namespace lacuna
