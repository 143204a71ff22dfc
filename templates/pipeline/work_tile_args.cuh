// The arguments of a launch for one work tile. In a batch of sequences, hooks, walks and reports
// see those of the work tile's sequence.
#pragma once

#include "args/attend_args.cuh"
#include "args/report_args.cuh"
#include "args/sequence_args.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "pipeline/batch_layout.cuh"

namespace lacuna {

/// Are the lists of attend made by `compact`, and so in the workspace?
LACUNA_OPTIONAL_FIELD(bool, makes_lists, kMakesLists, false)

/// Tiles of the longest sequence, which reports and the caller's lists are laid out for.
struct MostTiles {
  int q, k;
};

/// Of arguments that have the sequence's lengths already: a work tile finds its reports, and lists
/// of the caller's, where those of the longest sequence would lie.
template <class Config, class Row>
__device__ __forceinline__ void move_reports(AttendArgs& attend, const MostTiles& most,
                                             const Row& row) {
  const long long rows = row.head() * (most.q - attend.q_tiles);
  if (attend.counts != nullptr) attend.counts += rows * kCountsOfRow;
  if (attend.tile_mask != nullptr)
    attend.tile_mask += (row.head() * most.q + row.i) * most.k - row.index() * attend.k_tiles;
  if (!makes_lists<Config>() && attend.list_counts != nullptr) {
    attend.list_indices += rows * attend.list_capacity;
    attend.list_counts += rows;
  }
}

/// Lists that `compact` has made for a sequence, by the tiles that it has, begin with its piece of
/// the workspace. A work tile counts in rows of all sequences.
template <class Row>
__device__ __forceinline__ void move_lists(AttendArgs& attend, long long workspace_bytes,
                                           const Row& row) {
  const long long rows = static_cast<long long>(row.b) * attend.n_h * attend.q_tiles;
  move_by(attend.list_indices, row.b * workspace_bytes);
  move_by(attend.list_counts, row.b * workspace_bytes);
  attend.list_indices -= rows * attend.list_capacity;
  attend.list_counts -= rows;
}

/// Blocks that take work tiles of all sequences are given the arguments of the whole batch, and
/// take the lengths of the sequence from the SequenceTile. A batch of one length is read as it is,
/// without a copy.
template <class Config, class Args, class Row>
__device__ __forceinline__ decltype(auto) args_of_work_tile(const Args& args, const Row& row) {
  if constexpr (has_sequence_tiles<Config>()) {
    Args own = args;
    own.attend.n_q = row.n_q;
    own.attend.n_k = row.n_k;
    own.attend.k_tiles = ceil_div(row.n_k, Config::kTileK);
    if constexpr (!packs_heads<Config>()) {
      own.attend.q_tiles = row.q_tiles;
      if constexpr (makes_lists<Config>())
        move_lists(own.attend, args.sequences.workspace_bytes, row);
      move_reports<Config>(own.attend, {args.attend.q_tiles, args.attend.k_tiles}, row);
    }
    return own;
  } else if constexpr (has_sequences<Config>()) {
    Args own = args;
    move_reports<Config>(own.attend, {args.sequences.most_q_tiles, args.sequences.most_k_tiles},
                         row);
    return own;
  } else {
    return static_cast<const Args&>(args);
  }
}

}  // namespace lacuna
