// How the batch of a Config lies in memory: uniform, unless the Config says otherwise.
#pragma once

#include "base/kinds.cuh"
#include "base/optional_field.cuh"

namespace lacuna {

LACUNA_OPTIONAL_FIELD(BatchLayout, batch_layout, kBatch, BatchLayout::kUniform)
template <class Config>
constexpr bool has_sequences() {
  return batch_layout<Config>() != BatchLayout::kUniform;
}

/// Are attend's rows copies in the workspace, in another order of tokens than the caller's?
LACUNA_OPTIONAL_FIELD(bool, permutes, kPermutes, false)

// Of a batch of sequences:
/// Is it a branch of several, whose results are rows of the workspace?
LACUNA_OPTIONAL_FIELD(bool, is_branch, kIsBranch, false)
/// And are those of all sequences one array [n_b, n_h, n_q, d], or does each have a piece?
LACUNA_OPTIONAL_FIELD(bool, has_results_of_all, kResultsOfAll, false)
/// Tokens of a mean, where attend's keys and values are means in the workspace.
LACUNA_OPTIONAL_FIELD(int, mean_tokens, kMeanTokens, 1)
/// The same of queries.
LACUNA_OPTIONAL_FIELD(int, query_mean_tokens, kQueryMeanTokens, 1)
/// Are attend's keys and values 16-bit rows in the workspace that are made of codes?
LACUNA_OPTIONAL_FIELD(bool, widens_keys, kWidensKeys, false)
/// Keys and values of the workspace, not the caller's.
template <class Config>
constexpr bool makes_keys() {
  return mean_tokens<Config>() > 1 || widens_keys<Config>() || permutes<Config>();
}
/// Do the rows that attend reads lie in pages?
template <class Config>
constexpr bool attends_to_pages() {
  return batch_layout<Config>() == BatchLayout::kPages && !makes_keys<Config>();
}

/// Has the block of this number nothing to do, because the sequence needs only `count` of them? The
/// grid has as many for each sequence as the longest possible one needs.
template <class Config>
__device__ __forceinline__ bool is_beyond(int number, int count) {
  return has_sequences<Config>() && number >= count;
}

/// Do blocks take work tiles of all sequences one after the other (pipeline/sequence_tile.cuh)?
LACUNA_OPTIONAL_FIELD(bool, has_sequence_tiles, kHasSequenceTiles, false)
/// Of these: has a work tile rows of all heads of a KV head? If not, of one head.
LACUNA_OPTIONAL_FIELD(bool, packs_heads, kPacksHeads, false)
/// Does such a kernel take the sequences of few queries alone, because heads differ in what they
/// compute? The kernel for work tiles of one head leaves them to it (pipeline/sequence_tile.cuh).
LACUNA_OPTIONAL_FIELD(bool, takes_few_queries, kTakesFewQueries, false)
LACUNA_OPTIONAL_FIELD(bool, leaves_few_queries, kLeavesFewQueries, false)
/// Of both: are rows one item each? Heads are then packed only where there are more rows than
/// multiprocessors; else each head's row has one to itself.
LACUNA_OPTIONAL_FIELD(bool, has_whole_rows, kHasWholeRows, false)
/// Of one that takes them: does each head keep tiles of its own, so that rows of others hide a
/// tile?
LACUNA_OPTIONAL_FIELD(bool, hides_rows, kHidesRows, false)
/// And has each head a gate of its own (attend/wgmma/gates/row_gates.cuh)?
LACUNA_OPTIONAL_FIELD(bool, gates_rows, kGatesRows, false)

}  // namespace lacuna
