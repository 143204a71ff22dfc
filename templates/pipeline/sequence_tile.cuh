// Work tiles of a batch of sequences in the wgmma family. Where nothing is decided for each head
// (packs_heads), the query heads that share a KV head are rows of one tile, so that few queries
// fill it and keys and values are read once for all of them:
//
//   warpgroup w, of group_queries = T queries and G = heads_per_kv heads, T = 64 / G rounded down
//   row 0 .. T-1          queries q0 + w T .. q0 + w T + T - 1 of head h
//   row T .. 2T-1         the same of head h + 1
//   ...
//   row G T .. 63         of no query: zeros
//
// Rows behind the last query of the sequence are zeros, too; formulas take them for the last one,
// so that they have keys wherever that has.
//
// Where each head has tiles of its own, by lists, a gate or columns, a work tile is that of one
// head: T is 64. Two neighbours of 64 queries each, of which each warpgroup has one
// (Config::kWorkTiles), are one item.
//
// Sequences of few queries would fill a small part of such a tile, and each head would read its
// keys by itself. Where tiles come from bits of a predictor, or heads have a gate, they have a
// kernel of their own (takes_few_queries), with heads packed in a tile and rows that hide what
// their head does not keep (hides_rows, pipeline/kept_walk.cuh) or its gate leaves out (gates_rows,
// attend/wgmma/gates/row_gates.cuh).
#pragma once

#include "args/sequence_args.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/gate.cuh"
#include "pipeline/kv_element.cuh"
#include "pipeline/lane_rows.cuh"
#include "pipeline/row_counter.cuh"
#include "pipeline/tile_walk.cuh"
#include "pipeline/work_tile_args.cuh"

namespace lacuna {

struct SequenceTile : WorkTile {
  int kv_head;
  int n_q, n_k;  ///< of the sequence
  int q_begin, k_begin;
  int share, shares;  ///< the item, of so many
  int partial;        ///< place of the first item's partial results
};

/// Query heads whose rows a work tile has.
template <class Config, class Args>
__device__ __forceinline__ int tile_heads(const Args& args) {
  return packs_heads<Config>() ? args.attend.heads_per_kv : 1;
}
/// In how many of them has a sequence work tiles?
template <class Config, class Args>
__device__ __forceinline__ int heads_of_tiles(const Args& args) {
  return packs_heads<Config>() ? args.attend.n_h / args.attend.heads_per_kv : args.attend.n_h;
}

/// Queries that a sequence has at most for its heads to be packed though each has tiles of its own:
/// those of one work tile, and with that of one tile of the predictor; with a gate those that are
/// rows of one warp for each head. 0: no heads share keys. compiler/lower/attend/schedule.cpp has
/// the same numbers.
template <class Config, class Args>
__device__ __forceinline__ int most_few_queries(const Args& args) {
  const int heads = args.attend.heads_per_kv;
  if (heads == 1) return 0;
  if constexpr (has_whole_rows<Config>()) {
    if (args.attend.n_b * args.attend.n_h <= args.batch_schedule.sm_count) return 0;
  }
  if constexpr (Config::kGateScope == GateScope::kNone && !gates_rows<Config>())
    return Config::kWarpgroups * (kWarpgroupRows / heads);
  int rows = kWarpRows;
  while (rows * heads > kWarpgroupRows) rows /= 2;
  return rows;
}

/// Is a sequence of so many queries the other kernel's?
template <class Config, class Args>
__device__ __forceinline__ bool is_left_to_other(const Args& args, int n_q) {
  if constexpr (takes_few_queries<Config>()) return n_q > most_few_queries<Config>(args);
  if constexpr (leaves_few_queries<Config>()) return n_q <= most_few_queries<Config>(args);
  return false;
}

/// Row n of a warpgroup's 64: a query and its head.
struct PackedRow {
  int q, h;
  bool exists;
};
template <class Args>
__device__ __forceinline__ PackedRow packed_row(const Args& args, const SequenceTile& row,
                                                int warpgroup, int n) {
  const int queries = args.batch_schedule.group_queries;
  const int head = n * args.batch_schedule.group_inverse >> 16;  // n / queries: n is below 64
  const int q = row.q0 + warpgroup * queries + n - head * queries;
  return {smaller(q, row.n_q - 1), row.h + smaller(head, args.attend.heads_per_kv - 1),
          head < args.attend.heads_per_kv && q < row.n_q};
}

/// Rows n and n + 8.
template <class Args>
__device__ __forceinline__ PackedRows packed_rows(const Args& args, const SequenceTile& row,
                                                  int warpgroup, int n) {
  PackedRows lane;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const PackedRow one = packed_row(args, row, warpgroup, n + 8 * r);
    lane.queries[r] = one.q;
    lane.heads[r] = one.h;
    lane.are_rows[r] = one.exists;
  }
  return lane;
}

/// Where the results of a sequence begin in o or lse, [b, h, n], counted in elements from where the
/// tensor begins. Usually that is the row of the sequence's first query. Results of a branch lie in
/// the workspace, with as many rows for each sequence as the longest one has. Where tokens are in
/// another order, results lie in the sequence's piece of the workspace.
template <class Config, class Element, class Args>
__device__ __forceinline__ long long first_result(const Args& args, int b, int q_begin,
                                                  long long stride_b, long long stride_n) {
  if constexpr (is_branch<Config>()) return b * stride_b;
  if constexpr (permutes<Config>()) return elements_to_piece<Element>(args, b);
  return q_begin * stride_n;
}

/// Has a sequence a map of its own for an operand? Operands that are prepared have that of the
/// launch, and so have keys in pages.
template <class Config>
__host__ __device__ constexpr bool has_own_map(int map) {
  if (map == kSequenceQueries) return !Config::QuerySlot::kIsPrepared;
  if (map == kSequenceKeys) return !Config::KeySlot::kIsPrepared && !attends_to_pages<Config>();
  if (map == kSequenceValues) return !Config::ValueSlot::kIsPrepared;
  return true;
}

/// The maps that the schedule has made for a sequence.
template <class Args>
__device__ __forceinline__ const TensorMap* maps_of_sequence(const Args& args, int b) {
  return args.batch_schedule.maps + b * kSequenceMaps;
}

/// Of an item of several work tiles, `row` may be any of them.
template <class Config>
__device__ __forceinline__ int first_query_of_item(const SequenceTile& row) {
  return Config::kWorkTiles == 1 ? row.q0 : row.q0 - row.i % Config::kWorkTiles * Config::kTileQ;
}

/// Number of a row in arrays [partials, tile_heads, partial_queries].
template <class Config, class Args>
__device__ __forceinline__ long long partial_index(const Args& args, const SequenceTile& row,
                                                   int share, int q, int h) {
  const SequenceSchedule& schedule = args.batch_schedule;
  const long long head =
      static_cast<long long>(row.partial + share) * tile_heads<Config>(args) + h - row.h;
  return head * schedule.partial_queries + q - first_query_of_item<Config>(row);
}

/// The sequence of an item, by its rank: the last one that begins at or before it. By a whole warp,
/// which asks 32 of them at a time.
template <class Args>
__device__ __forceinline__ int rank_of_item(const Args& args, int item) {
  const int* first_items = args.batch_schedule.first_items;
  int begin = 0, count = args.attend.n_b;
  while (count > 1) {
    const int step = ceil_div(count, 32), at = lane_index() * step;
    const bool is_before = at < count && first_items[begin + at] <= item;
    const int last = __popc(__ballot_sync(kAllLanes, is_before)) - 1;
    begin += last * step;
    count = smaller(step, count - last * step);
  }
  return begin;
}

/// Items of all sequences.
template <class Args>
__device__ __forceinline__ int scheduled_items(const Args& args) {
  return args.batch_schedule.first_items[args.attend.n_b];
}

/// The work tile at a work index. Of a sequence, as work_tile_schedule.cuh numbers them: in groups
/// of KV heads whose keys stay in L2, last query tiles first; the items of a work tile are
/// neighbours.
template <class Config, class Args>
__device__ __forceinline__ SequenceTile sequence_tile(const Args& args, int item) {
  const ScheduledSequence sequence = args.batch_schedule.sequences[rank_of_item(args, item)];
  const Quotient place = divide(item - sequence.first_item, sequence.shares);
  const Quotient group = divide(place.quotient, sequence.group_rows);
  const Quotient height = divide(group.remainder, sequence.heads);

  SequenceTile row;
  const int number = group.quotient * sequence.heads.divisor + height.remainder;
  const int place_of_tile = sequence.q_tiles - 1 - height.quotient;
  row.i = place_of_tile * Config::kWorkTiles;
  row.h = number * tile_heads<Config>(args);
  row.kv_head = packs_heads<Config>() ? number : number / args.attend.heads_per_kv;
  row.b = sequence.b;
  const int queries = Config::kWarpgroups * args.batch_schedule.group_queries;
  row.q0 = place_of_tile * queries;
  row.q1 = smaller(row.q0 + queries, sequence.n_q) - 1;
  row.q_tiles = Config::kWorkTiles == 1 ? sequence.q_tiles : ceil_div(sequence.n_q, Config::kTileQ);
  row.n_h = args.attend.n_h;
  row.n_q = sequence.n_q;
  row.n_k = sequence.n_k;
  row.q_begin = sequence.q_begin;
  row.k_begin = sequence.k_begin;
  row.shares = sequence.shares.divisor;
  row.share = place.remainder;
  row.partial = sequence.first_partial +
                (number * sequence.q_tiles + place_of_tile) * sequence.shares.divisor;
  return row;
}

/// produce(SequenceTile) for each item that the block takes; by one whole warp.
template <class Config, class Args, class Produce>
__device__ __forceinline__ void for_each_item(const Args& args, const Produce& produce) {
  for_each_piece(
      args.schedule.next_row, [&] { return scheduled_items(args); },
      [&](int item) { produce(sequence_tile<Config>(args, item)); });
}

/// Which of `tiles` are those of an item.
template <class Config>
__device__ __forceinline__ TileShare share_of_row(const SequenceTile& row, int tiles, int) {
  const auto first = [&](int share) {
    return static_cast<int>(static_cast<long long>(tiles) * share / row.shares);
  };
  return {first(row.share), first(row.share + 1) - first(row.share)};
}
template <class Config>
__device__ __forceinline__ TileShare share_of_row(const WorkTile&, int tiles, int share) {
  return share_of_tiles<Config>(tiles, share);
}

/// A walk over the tiles of an item.
template <class Walk, class Config, class Args>
class SequenceWalk {
 public:
  __device__ __forceinline__ SequenceWalk(const Args& args, const SequenceTile& row)
      : walk_(args, row, {}) {
    if (row.shares == 1) return;
    const TileShare mine = share_of_row<Config>(row, walk_.count(args, row), 0);
    left_ = mine.count;
    if (left_ > 0) walk_.skip(args, row, mine.begin);
  }

  __device__ __forceinline__ TileRef next(const Args& args, const SequenceTile& row) {
    if (left_ == 0) return TileRef();
    --left_;
    return walk_.next(args, row);
  }

 private:
  Walk walk_;
  int left_ = 0x7fffffff;  ///< at most
};

}  // namespace lacuna
