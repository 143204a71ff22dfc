// What the argument block has besides where a batch consists of sequences: where each begins and
// how long it is, all on the device, so that a captured graph runs with other lengths. Of
// AttendArgs n_q and n_k are then the most that a sequence may have; n_b counts sequences in the
// wgmma family, and is 1 in the mma family, whose grids have a row of blocks for each sequence.
#pragma once

#include "arch/copy/tensor_map.cuh"
#include "base/count_divisor.cuh"

namespace lacuna {

struct SequenceArgs {
  const int* q_begin;  ///< [n_b + 1] first row of each sequence in q, o and lse
  const int* lengths;  ///< [n_b] keys of each sequence
  const int* k_begin;  ///< [n_b] first row of each sequence in k and v; of pages null
  const int* pages;    ///< [n_b, pages_stride]: k and v are [pages, heads_kv, page_tokens, d]
  long long pages_stride;
  long long workspace_bytes;  ///< of a sequence's piece, one behind the other
  int page_tokens;            ///< of pages a power of two
  int tile_q, tile_k;         ///< of attend and its reports, in tokens
  int keep_q, keep_k;         ///< of the predictor
  // What pipeline/sequences.cuh fills in, for the arguments of one sequence:
  int entry;                       ///< its number, which formulas know as b; else 0
  int most_q_tiles, most_k_tiles;  ///< of the longest, which reports and lists are laid out for
};
static_assert(sizeof(SequenceArgs) == 80, "the host writes this layout");

/// Tokens of a sequence, cut to the most that the launch admits: under a captured graph the device
/// may hold other lengths.
__device__ __forceinline__ int admitted_extent(int tokens, int most) {
  return larger(smaller(tokens, most), 0);
}

/// To the sequence's piece of the workspace.
template <class T>
__device__ __forceinline__ void move_by(T*& slot, long long bytes) {
  if (slot == nullptr) return;
  slot = reinterpret_cast<T*>(reinterpret_cast<unsigned long long>(slot) +
                              static_cast<unsigned long long>(bytes));
}

/// log2 of the tokens of a page. By comparisons: the instruction that finds a leading bit goes
/// through the pipe of the consumers' exponentials (templates/README.md, protocol 14).
__device__ __forceinline__ int page_shift_of(const SequenceArgs& sequences) {
  const int tokens = sequences.page_tokens;
  return 4 + (tokens > 16 ? 1 : 0) + (tokens > 32 ? 1 : 0) + (tokens > 64 ? 1 : 0);
}

/// A sequence as the schedule has it. A work tile is split into `shares` items.
struct alignas(16) ScheduledSequence {
  int b;  ///< its number
  int q_begin, n_q, k_begin, n_k;
  int q_tiles;          ///< work tiles of a head, or of a KV head where its heads are packed; or
                        ///< pairs of them, where a block takes two together
  int first_item;       ///< its work index
  int first_partial;    ///< where there are several shares: the place of its first item's results
  CountDivisor shares;  ///< items of a work tile
  CountDivisor heads;   ///< heads of tiles in a group, whose keys stay in L2 together
  CountDivisor group_rows;  ///< work tiles of a group
  int reserved[2];
};
static_assert(sizeof(ScheduledSequence) == 64, "the host reserves as much");

/// What pipeline/schedule_sequences.cuh makes for the wgmma family, in the workspace.
struct SequenceSchedule {
  ScheduledSequence* sequences;  ///< [n_b] longest items first
  int* first_items;              ///< [n_b + 1] work index of the first item of each, and how many
                                 ///< there are
  TensorMap* maps;               ///< [n_b, kSequenceMaps]
  float* partial_o;     ///< [partials, tile_heads, partial_queries, d] of items of split work tiles
  float* partial_lse;   ///< [partials, tile_heads, partial_queries]
  u32* arrivals;        ///< [partials, warps]: how many items have left their results
  int group_queries;    ///< of a warpgroup, each for all heads of a work tile
  int group_inverse;    ///< 2^16 / group_queries, rounded up
  int partial_queries;  ///< of a work tile, at most
  int partials;         ///< items of split work tiles that there is room for
  int sm_count;
  int value_places;          ///< of the values' ring that the launch uses
  int value_places_inverse;  ///< of LaunchRingPosition
  int reserved;
};
static_assert(sizeof(SequenceSchedule) == 80, "the host writes this layout");

/// Tensor maps of a sequence, cut at its end: its queries, keys, values and output; where keys lie
/// in pages, in place of its values those of its last page.
enum SequenceMap { kSequenceQueries, kSequenceKeys, kSequenceValues, kSequenceOutput };
inline constexpr int kSequenceMaps = 4;

}  // namespace lacuna
