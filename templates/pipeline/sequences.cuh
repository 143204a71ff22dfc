// A batch of sequences (args/sequence_args.cuh), for kernels whose blocks work on one sequence
// each: the arguments of a launch of that sequence alone. So hooks, walks and epilogues need not
// know of the others.
//
//   q, o    | 0 0 0 0 0 | 1 1 | 2 2 2 2 |        q_begin 0, 5, 7, 11
//   k, v    | 0 0 0 0 0 0 0 | 1 1 1 | 2 2 2 2 |  k_begin 0, 7, 10; lengths 7, 3, 4
//   or pages of 16 tokens: sequence 0 in pages 9, 2; sequence 1 in page 4; ...
//
// The grid has rows for the longest sequence that may come; blocks behind the end of theirs leave
// at once. Workspace and reports are laid out for the longest, too.
#pragma once

#include "args/attend_args.cuh"
#include "args/sequence_args.cuh"
#include "base/math.cuh"
#include "pipeline/batch_layout.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

template <class Element>
__device__ __forceinline__ void begin_at(TensorArg& tensor, int token) {
  tensor.data = static_cast<Element*>(tensor.data) + token * tensor.stride_n;
  tensor.stride_b = 0;
}

/// Of `b`; extents that a launch cannot have admitted (other lengths under a captured graph) are
/// cut to the most. q_tiles stays that of the longest, which rows are numbered by. Keys in pages
/// keep the tensor as it is.
template <class Config, class Args>
__device__ __forceinline__ Args args_of_sequence(const Args& args, int b) {
  using Element = typename Config::Element;
  Args own = args;
  const int first = args.sequences.q_begin[b];
  own.attend.n_q = smaller(args.sequences.q_begin[b + 1] - first, args.attend.n_q);
  own.attend.n_k = smaller(args.sequences.lengths[b], args.attend.n_k);
  begin_at<Element>(own.attend.q, first);
  begin_at<Element>(own.attend.o, first);
  own.attend.lse.data = args.attend.lse.data == nullptr ? nullptr : args.attend.lse.data + first;
  own.attend.lse.stride_b = 0;
  if constexpr (batch_layout<Config>(0) == BatchLayout::kSequences) {
    const int first_key = args.sequences.k_begin[b];
    begin_at<Element>(own.attend.k, first_key);
    begin_at<Element>(own.attend.v, first_key);
  }
  return own;
}

/// The same for a work tile, whose map of tiles has a row for the longest sequence.
template <class Config, class Args>
__device__ __forceinline__ Args args_of_row(const Args& args, const WorkTile& row) {
  Args own = args_of_sequence<Config>(args, row.b);
  own.attend.k_tiles = ceil_div(own.attend.n_k, Config::kTileK);
  if (args.attend.tile_mask != nullptr)
    own.attend.tile_mask += row.index() * (args.attend.k_tiles - own.attend.k_tiles);
  return own;
}

}  // namespace lacuna
