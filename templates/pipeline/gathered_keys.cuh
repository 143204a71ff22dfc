// The keys of a gathered work tile: the bits of its kept columns, expanded into a list by the
// block before it visits them (GatherWalk).
#pragma once

#include "pipeline/tile_walk.cuh"

namespace lacuna {

/// Word `word` of the row's bits; of all query heads of its KV head if they share columns.
template <class Config, class Args>
__device__ __forceinline__ u32 kept_columns(const Args& args, const WorkTile& row, int word) {
  if (word >= args.predict.keep_words) return 0;
  const int heads = Config::kSharedHeads ? args.attend.heads_per_kv : 1;
  const int first = row.h - row.h % heads;
  u32 bits = 0;
  for (int h = first; h < first + heads; ++h) {
    const long long head = static_cast<long long>(row.b) * row.n_h + h;
    bits |= args.predict.kept[(head * row.q_tiles + row.i) * args.predict.keep_words + word];
  }
  return bits;
}

/// How many of the warps' counts come before this warp, and all; `counts` is shared memory. A block
/// barrier is inside.
template <int kWarps>
__device__ __forceinline__ int2 exchange_counts(int* counts, int warp, int count) {
  if (lane_index() == 0) counts[warp] = count;
  __syncthreads();
  int2 sum = {0, 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) sum.x += counts[w];
    sum.y += counts[w];
  }
  return sum;
}

/// Writes the keys of the columns in `words`, one word a lane, `rank` columns being before the
/// lane's. Whole columns: what is past the last key is not counted.
template <class Config>
__device__ __forceinline__ void write_keys(int* keys, u32 words, int rank, int first_word) {
  constexpr int kKeys = Config::kKeepK;
  for (int from = 0; from < 32; ++from) {
    const u32 bits = __shfl_sync(kAllLanes, words, from);
    const int before = __shfl_sync(kAllLanes, rank, from);
    const int lane = lane_index();
    if ((bits >> lane & 1u) != 0) {
      int* target = keys + (before + __popc(bits & ((1u << lane) - 1u))) * kKeys;
      const int key = ((first_word + from) * 32 + lane) * kKeys;
#pragma unroll
      for (int n = 0; n < kKeys; ++n) target[n] = key + n;
    }
  }
}

/// The map of the row's columns in its report. `reports`: as in attend/report.cuh.
template <int kThreads, class Config, class Args>
__device__ __forceinline__ void map_columns(const Args& args, const AttendArgs& reports,
                                            const WorkTile& row, int thread) {
  if (reports.tile_mask == nullptr) return;
  unsigned char* map = reports.tile_mask + row_of_reports<Config>(reports, row) * reports.k_tiles;
  for (int j = thread; j < args.attend.k_tiles; j += kThreads) {
    map[j] = kept_columns<Config>(args, row, j / 32) >> (j % 32) & 1u;
  }
}

/// The row's columns in its report: all are visited, none is gated. Visible ones are counted later.
template <class Config, class Args>
__device__ __forceinline__ void report_columns(const Args& args, const WorkTile& row, int kept) {
  if (args.attend.counts != nullptr && thread_index() == 0) {
    int* counts = args.attend.counts + row.index() * 3;
    counts[1] = kept;
    counts[2] = 0;
  }
  map_columns<32 * Config::kWarps, Config>(args, args.attend, row, thread_index());
}

/// The same before anyone has counted them; by kThreads threads, of which this is one.
template <int kThreads, class Config, class Args>
__device__ __forceinline__ void report_gathered(const Args& args, const AttendArgs& reports,
                                                const WorkTile& row, int thread) {
  if (reports.counts != nullptr && uniform_over_warp(thread / 32) == 0) {
    int kept = 0;
    for (int word = lane_index(); word < args.predict.keep_words; word += 32)
      kept += __popc(kept_columns<Config>(args, row, word));
    kept = __shfl_sync(kAllLanes, inclusive_sum_over_lanes(kept), 31);
    if (lane_index() == 0) {
      int* counts = reports.counts + row_of_reports<Config>(reports, row) * 3;
      counts[1] = kept;
      counts[2] = 0;
    }
  }
  map_columns<kThreads, Config>(args, reports, row, thread);
}

/// Expands the row's bits and reports them. The whole block takes part; shared memory may be used
/// for anything before and after.
template <class Config, class Args>
__device__ __forceinline__ GatheredKeys gather_keys(const Args& args, const WorkTile& row,
                                                    unsigned char* smem) {
  constexpr int kThreads = 32 * Config::kWarps;
  int* keys = args.predict.gathered + static_cast<long long>(block_index()) * args.predict.k_padded;
  int* counts = reinterpret_cast<int*>(smem);
  const int warp = warp_index();
  int kept = 0, round = 0;
  for (int first = 0; first < args.predict.keep_words; first += kThreads, ++round) {
    const u32 word = kept_columns<Config>(args, row, first + thread_index());
    const int mine = __popc(word);
    const int upto = inclusive_sum_over_lanes(mine);
    const int of_warp = __shfl_sync(kAllLanes, upto, 31);
    // Two buffers: one barrier a round is enough.
    const int2 sum =
        exchange_counts<Config::kWarps>(counts + round % 2 * Config::kWarps, warp, of_warp);
    if (of_warp != 0) write_keys<Config>(keys, word, kept + sum.x + upto - mine, first + warp * 32);
    kept += sum.y;
  }
  report_columns<Config>(args, row, kept);
  // A sequence may have no keys.
  const int tiles = args.predict.keep_k_tiles;
  const int last = has_sequences<Config>() ? larger(tiles, 1) - 1 : tiles - 1;
  const bool keeps_last = (kept_columns<Config>(args, row, last / 32) >> (last % 32) & 1u) != 0;
  const int missing = (last + 1) * Config::kKeepK - args.attend.n_k;
  __syncthreads();  // the keys are written
  return {keys, kept * Config::kKeepK - (keeps_last ? missing : 0)};
}

}  // namespace lacuna
