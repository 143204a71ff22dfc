// A batch of sequences (args/sequence_args.cuh) in the mma family and in the kernels before attend.
// The grid of a kernel has a row of blocks for each sequence. These work with the arguments of a
// launch of that sequence alone, so kernels, hooks, walks and epilogues do not know of the others.
//
//   q, o    | 0 0 0 0 0 | 1 1 | 2 2 2 2 |        q_begin 0, 5, 7, 11
//   k, v    | 0 0 0 0 0 0 0 | 1 1 1 | 2 2 2 2 |  k_begin 0, 7, 10; lengths 7, 3, 4
//   or pages of 16 tokens: sequence 0 in pages 9, 2; sequence 1 in page 4; ...
//   workspace   | 0 . . | 1 . . | 2 . . |        workspace_bytes each; behind the sums of branches
//
// There are blocks and workspace enough for the longest sequence that may come. A shorter sequence
// uses a part of its piece, and the blocks that it has no work for end at once. What is padded
// (rows of integers and cells, scales, biases) is laid out for the longest, so that one tensor map
// describes all pieces; what counts tiles by the sequence's own lengths. Reports and the caller's
// lists are laid out for the longest.
#pragma once

#include "args/report_args.cuh"
#include "args/sequence_args.cuh"
#include "base/math.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/kv_element.cuh"
#include "pipeline/tile_walk.cuh"
#include "pipeline/work_tile_args.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

template <class Element>
__device__ __forceinline__ void begin_at(TensorArg& tensor, int token) {
  tensor.data = static_cast<Element*>(tensor.data) + token * tensor.stride_n;
  tensor.stride_b = 0;
}
__device__ __forceinline__ void begin_at(LseArg& lse, int token) {
  if (lse.data != nullptr) lse.data += token;
  lse.stride_b = 0;
}

/// Lengths, tiles and slots of the kernels around attend.
template <class Predict, class Args>
__device__ __forceinline__ void take_sequence(Predict& predict, const Args& own,
                                              long long workspace, int first) {
  begin_at(predict.previous_lse, first);
  if (own.sequences.keep_q > 0) {
    predict.keep_q_tiles = ceil_div(own.attend.n_q, own.sequences.keep_q);
    predict.keep_k_tiles = ceil_div(own.attend.n_k, own.sequences.keep_k);
    predict.keep_words = ceil_div(predict.keep_k_tiles, 32);
  }
  move_by(predict.partial, workspace);
  move_by(predict.q_mean, workspace), move_by(predict.k_mean, workspace);
  move_by(predict.v_scale, workspace);
  move_by(predict.q_summary, workspace), move_by(predict.k_summary, workspace);
  move_by(predict.q_similarity, workspace), move_by(predict.k_similarity, workspace);
  move_by(predict.q_cells, workspace), move_by(predict.k_cells, workspace);
  move_by(predict.q_values, workspace), move_by(predict.k_values, workspace);
  move_by(predict.q_scale, workspace), move_by(predict.k_scale, workspace);
  move_by(predict.estimate_q_values, workspace), move_by(predict.estimate_k_values, workspace);
  move_by(predict.estimate_q_scale, workspace), move_by(predict.estimate_k_scale, workspace);
  move_by(predict.v_values, workspace);
  move_by(predict.row_bias, workspace), move_by(predict.column_bias, workspace);
  move_by(predict.scores, workspace), move_by(predict.row_scores, workspace);
  move_by(predict.row_bins, workspace), move_by(predict.row_sums, workspace);
  move_by(predict.kept_before, workspace);
  move_by(predict.kept, own.sequences.entry * predict.kept_stride);
  move_by(predict.row_order, workspace), move_by(predict.gathered, workspace);
}

// Args has a member `predict`, `split` or `pairs` only where the program needs it.
template <class Args>
__device__ __forceinline__ auto take_predict_args(Args& own, long long workspace, int first, int)
    -> decltype(own.predict, void()) {
  take_sequence(own.predict, own, workspace, first);
}
template <class Args>
__device__ __forceinline__ void take_predict_args(Args&, long long, int, ...) {}
template <class Args>
__device__ __forceinline__ auto take_split(Args& own, long long workspace, int)
    -> decltype(own.split, void()) {
  move_by(own.split.partial_o, workspace), move_by(own.split.partial_lse, workspace);
}
template <class Args>
__device__ __forceinline__ void take_split(Args&, long long, ...) {}

template <class Args>
__device__ __forceinline__ auto take_classes(Args& own, long long workspace, int)
    -> decltype(own.pairs, void()) {
  move_by(own.pairs.tile_classes, workspace);
}
template <class Args>
__device__ __forceinline__ void take_classes(Args&, long long, ...) {}

/// Keys and values as they lie in memory; those in pages keep the tensors as they are.
template <class Config, class Args>
__device__ __forceinline__ void take_keys(Args& own, TensorArg& k, TensorArg& v, int b) {
  if constexpr (batch_layout<Config>() == BatchLayout::kSequences) {
    const int first_key = own.sequences.k_begin[b];
    begin_at<KvElement<Config>>(k, first_key);
    begin_at<KvElement<Config>>(v, first_key);
  } else {
    own.sequences.pages += b * own.sequences.pages_stride;
  }
}

/// The sums that branches hand on to the next, and what attend has left for them. Sums have rows
/// for `most` queries of each sequence; attend's o is contiguous, so it says how wide they are.
template <class Config, class Args>
__device__ __forceinline__ void take_results(Args& own, long long workspace, int b, int most) {
  AttendArgs& attend = own.attend;
  const long long rows = static_cast<long long>(b) * attend.n_h * most;
  own.branch.sum_o += rows * attend.o.stride_n;
  if (own.branch.sum_lse != nullptr) own.branch.sum_lse += 2 * rows;
  if constexpr (has_results_of_all<Config>()) {
    attend.o.data = static_cast<typename Config::Element*>(attend.o.data) + b * attend.o.stride_b;
    if (attend.lse.data != nullptr) attend.lse.data += b * attend.lse.stride_b;
  } else {
    move_by(attend.o.data, workspace), move_by(attend.lse.data, workspace);
  }
}

/// Query tokens that a sequence may have at most.
template <class Config, class Args>
__device__ __forceinline__ int most_queries(const Args& args) {
  if constexpr (query_mean_tokens<Config>() > 1) {
    return args.param_n_queries.value;
  } else {
    return args.attend.n_q;
  }
}

/// What of attend's tensors is the caller's, and what lies in the sequence's piece of the
/// workspace.
template <class Config, class Args>
__device__ __forceinline__ void take_tensors(Args& own, long long workspace, int first, int b,
                                             int most) {
  using Element = typename Config::Element;
  AttendArgs& attend = own.attend;
  if constexpr (query_mean_tokens<Config>() > 1 || permutes<Config>()) {
    move_by(attend.q.data, workspace);
    begin_at<Element>(own.predict.caller_q, first);
  } else {
    begin_at<Element>(attend.q, first);
  }
  if constexpr (is_branch<Config>() || permutes<Config>()) {
    if (own.predict.caller_o.data != nullptr) begin_at<Element>(own.predict.caller_o, first);
    begin_at(own.predict.caller_lse, first);
  }
  if constexpr (permutes<Config>()) own.predict.order += first;
  if constexpr (is_branch<Config>()) {
    take_results<Config>(own, workspace, b, most);
  } else if constexpr (permutes<Config>()) {
    move_by(attend.o.data, workspace), move_by(attend.lse.data, workspace);
  } else {
    begin_at<Element>(attend.o, first);
    begin_at(attend.lse, first);
  }
  if constexpr (makes_keys<Config>()) {
    move_by(attend.k.data, workspace), move_by(attend.v.data, workspace);
    take_keys<Config>(own, own.predict.caller_k, own.predict.caller_v, b);
  } else {
    take_keys<Config>(own, attend.k, attend.v, b);
  }
}

/// Of the sequence of this row of blocks. Extents that a launch cannot have admitted (other lengths
/// under a captured graph) are cut to the most.
template <class Config, class Args>
__device__ __forceinline__ Args args_of_sequence(const Args& args) {
  Args own = args;
  const int b = static_cast<int>(blockIdx.y);
  const int first = args.sequences.q_begin[b];
  const long long workspace = b * args.sequences.workspace_bytes;
  AttendArgs& attend = own.attend;
  const int queries = args.sequences.q_begin[b + 1] - first;
  const int keys = key_tokens<Config>(args, b, queries);
  attend.n_q = rows_of_queries<Config>(args, queries);
  attend.n_k = rows_of_keys<Config>(args, keys);
  take_token_counts<Config>(own, queries, keys);
  take_orders<Config>(own, first);
  take_tensors<Config>(own, workspace, first, b, most_queries<Config>(args));
  attend.n_b = 1;
  own.sequences.entry = b;
  own.sequences.most_q_tiles = attend.q_tiles;
  own.sequences.most_k_tiles = attend.k_tiles;
  const long long most_rows = static_cast<long long>(b) * attend.n_h * attend.q_tiles;
  if (attend.counts != nullptr) attend.counts += most_rows * kCountsOfRow;
  if (attend.tile_mask != nullptr) attend.tile_mask += most_rows * attend.k_tiles;
  if constexpr (makes_lists<Config>()) {
    move_by(attend.list_indices, workspace), move_by(attend.list_counts, workspace);
    move_by(attend.row_order, workspace);
  } else if (attend.list_counts != nullptr) {
    attend.list_indices += most_rows * attend.list_capacity;
    attend.list_counts += most_rows;
  }
  attend.q_tiles = ceil_div(attend.n_q, args.sequences.tile_q);
  attend.k_tiles = ceil_div(attend.n_k, args.sequences.tile_k);
  take_predict_args(own, workspace, first, 0);
  take_split(own, workspace, 0);
  take_classes(own, workspace, 0);
  return own;
}

}  // namespace lacuna
