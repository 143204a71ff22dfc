// The arguments of a launch for one work tile. In a batch of sequences, hooks, walks and reports
// see those of the work tile's sequence.
#pragma once

#include "args/attend_args.cuh"
#include "args/report_args.cuh"
#include "args/sequence_args.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/tile_classes.cuh"

namespace lacuna {

/// Are the lists of attend made by `compact`, and so in the workspace?
LACUNA_OPTIONAL_FIELD(bool, makes_lists, kMakesLists, false)

/// Of arguments that have the sequence's lengths already: a work tile finds lists of the caller's
/// where those of the longest sequence would lie, which has so many tiles of queries.
template <class Row>
__device__ __forceinline__ void move_given_lists(AttendArgs& attend, int most_q_tiles,
                                                 const Row& row) {
  if (attend.list_counts == nullptr) return;
  const long long rows = row.head() * (most_q_tiles - attend.q_tiles);
  attend.list_indices += rows * attend.list_capacity;
  attend.list_counts += rows;
}

/// The same of reports.
template <class Row>
__device__ __forceinline__ void move_reports(AttendArgs& attend, const SequenceArgs& sequences,
                                             const Row& row) {
  const long long most = row.head() * sequences.most_q_tiles + row.i;
  if (attend.counts != nullptr) attend.counts += (most - row.index()) * kCountsOfRow;
  if (attend.tile_mask != nullptr)
    attend.tile_mask += most * sequences.most_k_tiles - row.index() * attend.k_tiles;
}

// Kernels before attend prepare arrays with a row for each head: scales, biases. In a batch of one
// shape an array has the heads of all batch entries. In a batch of sequences each sequence has an
// array of its own, in its piece of the workspace.

/// The array with the rows of batch entry b. `array`: as the launch's arguments have it.
template <class Config, class Args, class T>
__device__ __forceinline__ T* prepared_of(const Args& args, T* array, int b) {
  if constexpr (has_sequence_tiles<Config>()) move_by(array, b * args.sequences.workspace_bytes);
  return array;
}
/// The number of a head in such an array; a batch entry has so many `heads`.
template <class Config>
__device__ __forceinline__ long long prepared_head(int b, int h, int heads) {
  if constexpr (has_sequence_tiles<Config>()) return h;
  return static_cast<long long>(b) * heads + h;
}

/// From an address in the piece of the first sequence to the same one in the piece of sequence b,
/// in elements.
template <class Element, class Args>
__device__ __forceinline__ long long elements_to_piece(const Args& args, int b) {
  return b * args.sequences.workspace_bytes / static_cast<int>(sizeof(Element));
}

/// How many rows come before those of a work tile's sequence in WorkTile::index. That number is
/// worked out as if every sequence of the batch had as many query tiles as this one.
template <class Row>
__device__ __forceinline__ long long rows_before(const AttendArgs& attend, const Row& row) {
  return static_cast<long long>(row.b) * attend.n_h * attend.q_tiles;
}

/// Lists that `compact` has made for a sequence, by the tiles that it has, begin with its piece of
/// the workspace.
template <class Row>
__device__ __forceinline__ void move_made_lists(AttendArgs& attend, long long workspace_bytes,
                                                const Row& row) {
  move_by(attend.list_indices, row.b * workspace_bytes);
  move_by(attend.list_counts, row.b * workspace_bytes);
  attend.list_indices -= rows_before(attend, row) * attend.list_capacity;
  attend.list_counts -= rows_before(attend, row);
}

/// Bits of the columns that a sequence keeps, by the columns that it has.
template <class Config, class Args, class Row>
__device__ __forceinline__ void take_kept_columns(Args& own, const Row& row) {
  auto& predict = own.predict;
  predict.keep_k_tiles = own.attend.k_tiles;
  predict.keep_words = ceil_div(predict.keep_k_tiles, 32);
  move_by(predict.kept, row.b * predict.kept_stride);
  predict.kept -= rows_before(own.attend, row) * predict.keep_words;
}

/// Bits of the tiles that a sequence of few queries keeps: a row of them for each head.
template <class Config, class Args, class Row>
__device__ __forceinline__ void take_kept_tiles(Args& own, const Row& row) {
  auto& predict = own.predict;
  predict.keep_k_tiles = ceil_div(row.n_k, Config::kKeepK);
  predict.keep_words = ceil_div(predict.keep_k_tiles, 32);
  move_by(predict.kept, row.b * predict.kept_stride);
}

/// The classes of a sequence's tiles (pipeline/tile_classes.cuh) lie in its piece of the workspace.
/// A work tile of packed heads has all queries of its sequence, which are one query tile there.
template <class Config, class Args, class Row>
__device__ __forceinline__ void take_tile_classes(Args& own, const Row& row) {
  if constexpr (hides_rows<Config>()) own.attend.q_tiles = 1;
  move_by(own.pairs.tile_classes, row.b * own.sequences.workspace_bytes);
  // A piece has words as of batch entry 0, whatever the sequence's number.
  if constexpr (Config::kPairsVaryByBatch)
    own.pairs.tile_classes +=
        class_words<Config>(own, 0, 0, 0) - class_words<Config>(own, row.b, 0, 0);
}

/// Keys of a sequence of so many queries.
template <class Config, class Args>
__device__ __forceinline__ int key_tokens(const Args& args, int b, int queries) {
  const int keys = args.sequences.lengths[b];
  return permutes<Config>() ? smaller(keys, queries) : keys;  // one order is for both
}

/// Rows of a sequence that attend reads, of so many tokens of the caller's: the tokens, or their
/// means. Args has a parameter that counts tokens only where rows are means.
template <class Config, class Args>
__device__ __forceinline__ int rows_of_queries(const Args& args, int tokens) {
  if constexpr (query_mean_tokens<Config>() > 1)
    tokens =
        ceil_div(admitted_extent(tokens, args.param_n_queries.value), query_mean_tokens<Config>());
  return admitted_extent(tokens, args.attend.n_q);
}
template <class Config, class Args>
__device__ __forceinline__ int rows_of_keys(const Args& args, int tokens) {
  if constexpr (mean_tokens<Config>() > 1)
    tokens = ceil_div(admitted_extent(tokens, args.param_n_tokens.value), mean_tokens<Config>());
  return admitted_extent(tokens, args.attend.n_k);
}

/// The parameters that tell formulas of means the number of tokens (compiler/ir/over_means.hpp).
template <class Config, class Args>
__device__ __forceinline__ void take_token_counts(Args& own, int queries, int keys) {
  if constexpr (query_mean_tokens<Config>() > 1)
    own.param_n_queries.value = admitted_extent(queries, own.param_n_queries.value);
  if constexpr (mean_tokens<Config>() > 1)
    own.param_n_tokens.value = admitted_extent(keys, own.param_n_tokens.value);
}

// Formulas of permuted tokens read the order as parameters (compiler/ir/callers_positions.hpp).
// They are asked about rows behind the last query, too; these rows read the last place of the order
// of their own sequence.

template <class Order>
__device__ __forceinline__ void cut_order(Order& order, int first, int tokens) {
  order.data += first;
  order.extent[0] = tokens;
}

// Args has each of the two parameters only where a formula reads it.
template <class Args>
__device__ __forceinline__ auto take_query_order(Args& own, int first, int)
    -> decltype(own.param_query_order, void()) {
  cut_order(own.param_query_order, first, own.attend.n_q);
}
template <class Args>
__device__ __forceinline__ void take_query_order(Args&, int, ...) {}
template <class Args>
__device__ __forceinline__ auto take_key_order(Args& own, int first, int)
    -> decltype(own.param_key_order, void()) {
  cut_order(own.param_key_order, first, own.attend.n_k);
}
template <class Args>
__device__ __forceinline__ void take_key_order(Args&, int, ...) {}

/// Of arguments that have the sequence's lengths already. `first`: its first row.
template <class Config, class Args>
__device__ __forceinline__ void take_orders(Args& own, int first) {
  if constexpr (!permutes<Config>()) return;
  take_query_order(own, first, 0);
  take_key_order(own, first, 0);
}

/// Blocks that take work tiles of all sequences are given the arguments of the whole batch, and
/// take the lengths of the sequence from the SequenceTile; they write reports by the arguments of
/// the batch (attend/report.cuh). A batch of one length is read as it is, without a copy.
template <class Config, class Args, class Row>
__device__ __forceinline__ decltype(auto) args_of_work_tile(const Args& args, const Row& row) {
  if constexpr (has_sequence_tiles<Config>()) {
    Args own = args;
    own.attend.n_q = row.n_q;
    own.attend.n_k = row.n_k;
    own.attend.k_tiles = ceil_div(row.n_k, Config::kGathers ? Config::kKeepK : Config::kTileK);
    const SequenceArgs& sequences = args.sequences;
    const int queries = sequences.q_begin[row.b + 1] - sequences.q_begin[row.b];
    take_token_counts<Config>(own, queries, key_tokens<Config>(args, row.b, queries));
    take_orders<Config>(own, row.q_begin);
    if constexpr (!packs_heads<Config>()) own.attend.q_tiles = row.q_tiles;
    if constexpr (asks_pairs<Config>()) take_tile_classes<Config>(own, row);
    if constexpr (hides_rows<Config>()) {
      take_kept_tiles<Config>(own, row);
    } else if constexpr (Config::kGathers) {
      take_kept_columns<Config>(own, row);
    } else if constexpr (makes_lists<Config>()) {
      move_made_lists(own.attend, args.sequences.workspace_bytes, row);
    } else if constexpr (Config::kUsesLists) {
      move_given_lists(own.attend, args.attend.q_tiles, row);
    }
    return own;
  } else if constexpr (has_sequences<Config>()) {
    Args own = args;
    move_reports(own.attend, args.sequences, row);
    if constexpr (!makes_lists<Config>())
      move_given_lists(own.attend, args.sequences.most_q_tiles, row);
    return own;
  } else {
    return static_cast<const Args&>(args);
  }
}

}  // namespace lacuna
