// What a block did, written on request: counts, and the map of visited and gated tiles. All
// branches are uniform. One thread writes, without atomics, so that reports are the same from run
// to run.
//
// If work tiles are split, or are those of sequences, no item could clear a report before all
// others begin, so the host has filled it with zeros. Each item marks its own tiles and adds their
// number by atomics; the first item says what is visible. Rows with a gate are one item each.
#pragma once

#include "arch/atomic.cuh"
#include "args/report_args.cuh"
#include "pipeline/tile_walk.cuh"

namespace lacuna {

__device__ __forceinline__ bool wants_report(const AttendArgs& args) {
  return args.counts != nullptr || args.tile_mask != nullptr;
}

/// Do several items report of one row? Those of split rows do, and those of sequences may.
template <class Config>
constexpr bool has_reports_of_items() {
  return SplitKv<Config>::kIsSplit || has_sequence_tiles<Config>();
}

/// Fills the row's map and counts with 0; a block barrier must follow before the first
/// report_visit. Nothing to do where several items report of a row: the host has filled them.
template <class Config, int kThreads>
__device__ __forceinline__ void open_report(const AttendArgs& args, const WorkTile& row,
                                            int thread = thread_index()) {
  if constexpr (has_reports_of_items<Config>()) return;
  if (args.counts != nullptr && thread < kCountsOfRow)
    args.counts[row.index() * kCountsOfRow + thread] = 0;
  if (args.tile_mask == nullptr) return;
  unsigned char* map = args.tile_mask + row.index() * args.k_tiles;
  for (int j = thread; j < args.k_tiles; j += kThreads) map[j] = 0;
}

/// `number()`: of the row in the arrays of reports.
template <class Config, class Number>
__device__ __forceinline__ void write_visit_of_row(const AttendArgs& args, const Number& number,
                                                   int j, bool gated) {
  if (args.tile_mask != nullptr)
    args.tile_mask[number() * args.k_tiles + j] = static_cast<unsigned char>(1 + gated);
  if (args.counts == nullptr) return;
  int* counts = args.counts + number() * kCountsOfRow;
  if constexpr (has_reports_of_items<Config>()) {
    take_number(reinterpret_cast<u32*>(counts + 1));
    if constexpr (Config::kGateScope != GateScope::kNone) counts[2] += static_cast<int>(gated);
    if constexpr (gates_rows<Config>()) {
      if (gated) take_number(reinterpret_cast<u32*>(counts + 2));
    }
    return;
  }
  ++counts[1];
  counts[2] += static_cast<int>(gated);
}

/// `gated`: by the whole block. By one thread, the same for all tiles of an item. No branch asks
/// for `gated`: the compiler would lead this thread past the caller's own question, apart from its
/// warp. In a batch of sequences the row's number is computed once: a second time would take
/// registers, of which a walk over two lists leaves none. In a batch of one shape each of the two
/// addresses computes the number for itself, which the compiler turns into faster code.
template <class Config>
__device__ __forceinline__ void write_visit(const AttendArgs& args, const WorkTile& row, int j,
                                            bool gated) {
  if constexpr (has_sequence_tiles<Config>()) {
    const long long number = row_of_reports<Config>(args, row);
    write_visit_of_row<Config>(
        args, [&] { return number; }, j, gated);
  } else {
    write_visit_of_row<Config>(
        args, [&] { return row.index(); }, j, gated);
  }
}

/// The same for blocks of one row. Locates the row again, so that the loop over tiles keeps no
/// register for a report that is seldom wanted.
template <class Config>
__device__ __forceinline__ void report_visit(const AttendArgs& args, int j, bool gated) {
  if (thread_index() != 0) return;
  write_visit<Config>(args, locate_work_tile<Config>(args, block_index()), j, gated);
}

/// Visible tiles (or gathered columns) are counted apart from the walk: a list may leave out what
/// the mask shows. By one warp, which begins with `thread` 0; `args`: of the work tile, `reports`:
/// where its reports lie.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void count_visible(const Args& args, const AttendArgs& reports,
                                              const WorkTile& row, int thread) {
  constexpr int kKeys = Config::kGathers ? Config::kKeepK : Config::kTileK;
  int visible = 0;
  for (int chunk = 0; chunk * 32 < args.attend.k_tiles; ++chunk) {
    visible += __popc(classify_chunk<Config, Hooks, kKeys, false>(args, row, chunk).visible);
  }
  if (thread == 0) reports.counts[row_of_reports<Config>(reports, row) * kCountsOfRow] = visible;
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void close_report(const Args& args, const AttendArgs& reports,
                                             const WorkTile& row) {
  if (reports.counts == nullptr || warp_index() != 0) return;
  count_visible<Config, Hooks>(args, reports, row, thread_index());
}

}  // namespace lacuna
