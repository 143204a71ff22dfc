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

/// Of args_of_sequence, which has the sequence's lengths already: a work tile finds its reports,
/// and lists of the caller's, where those of the longest sequence would lie.
template <class Config, class Row>
__device__ __forceinline__ void move_reports(AttendArgs& attend, const SequenceArgs& sequences,
                                             const Row& row) {
  const long long rows = static_cast<long long>(row.h) * (sequences.most_q_tiles - attend.q_tiles);
  if (attend.counts != nullptr) attend.counts += rows * kCountsOfRow;
  if (attend.tile_mask != nullptr) {
    const long long most = static_cast<long long>(row.h) * sequences.most_q_tiles + row.i;
    attend.tile_mask += most * sequences.most_k_tiles - row.index() * attend.k_tiles;
  }
  if (!makes_lists<Config>() && attend.list_counts != nullptr) {
    attend.list_indices += rows * attend.list_capacity;
    attend.list_counts += rows;
  }
}

/// Blocks that pack heads are given the arguments of the whole batch, and take the lengths of the
/// sequence from the SequenceTile. A batch of one length is read as it is, without a copy.
template <class Config, class Args, class Row>
__device__ __forceinline__ decltype(auto) args_of_work_tile(const Args& args, const Row& row) {
  if constexpr (packs_heads<Config>()) {
    Args own = args;
    own.attend.n_q = row.n_q;
    own.attend.n_k = row.n_k;
    own.attend.k_tiles = ceil_div(row.n_k, Config::kTileK);
    return own;
  } else if constexpr (has_sequences<Config>()) {
    Args own = args;
    move_reports<Config>(own.attend, args.sequences, row);
    return own;
  } else {
    return static_cast<const Args&>(args);
  }
}

}  // namespace lacuna
