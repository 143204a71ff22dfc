// The schedule of a batch of sequences in the wgmma family. The blocks of attend make it on the
// device, from lengths that lie there (args/sequence_args.cuh), before their other work. It is made
// in parts: of a part, a warp of a block has the items of one sequence, and another warp its tensor
// maps. Every warp looks at all sequences, so no warp needs what another finds. Blocks take parts
// by a counter until there are none left, then wait until all are made. This cannot hang: a part
// that others wait for was taken by a block that runs.
//
// Items. If there are fewer work tiles than keep all multiprocessors busy, the keys of each are
// shared out among several items. Let W be the sum of (work tiles * key tiles) and K the key tiles
// of the longest work tile. Cutting K into s shares, and all others to the same length, gives W / K
// * s items. s is the first number that leaves less than 6 % of the multiprocessors without work in
// the last round, else the best that there is room for. A shorter work tile has fewer shares.
//
// Order. Long items come first, so that the last ones are short and few blocks wait at the end.
//
// Tensor maps. Those of the launch describe all sequences. Each sequence has copies that begin at
// its first row and end at its last, so that the copy engine fills what lies behind with zeros.
#pragma once

#include "arch/atomic.cuh"
#include "arch/copy/edit_map.cuh"
#include "pipeline/kv_element.cuh"
#include "pipeline/sequence_tile.cuh"
#include "pipeline/work_tile_schedule.cuh"

namespace lacuna {

inline constexpr int kFewestTilesOfItem = 4;
inline constexpr int kMostShares = 64;

/// The lengths of a sequence, and the tiles they make. Lengths that a launch cannot have admitted
/// (others under a captured graph) are cut to the most.
struct SequenceWork {
  int q_begin, n_q, n_k, q_tiles, k_tiles;
};

template <class Config, class Args>
__device__ __forceinline__ SequenceWork work_of(const Args& args, int b) {
  SequenceWork work;
  work.q_begin = args.sequences.q_begin[b];
  const int queries = args.sequences.q_begin[b + 1] - work.q_begin;
  work.n_q = rows_of_queries<Config>(args, queries);
  work.n_k = rows_of_keys<Config>(args, key_tokens<Config>(args, b, queries));
  work.q_tiles = is_left_to_other<Config>(args, work.n_q)
                     ? 0
                     : ceil_div(work.n_q, Config::kWarpgroups * args.batch_schedule.group_queries);
  work.k_tiles = ceil_div(work.n_k, Config::kTileK);
  return work;
}

/// How work tiles are cut: one of `longest` key tiles into `shares`.
struct Cut {
  int longest, shares;
};

/// Share of the multiprocessors' time that so many equal items take.
__device__ __forceinline__ float use_of(float items, float sm_count) {
  return items / (ceilf(items / sm_count) * sm_count);
}

/// The first number of shares that uses the multiprocessors well, else the one that uses them best,
/// among those that there is room for. By a whole warp, of which each lane looks at two numbers.
__device__ __forceinline__ int choose_shares(float work_tiles, int longest, int partials,
                                             int sm_count) {
  constexpr float kGoodUse = 0.94f;
  float uses[kMostShares / 32], best = 0.0f;
#pragma unroll
  for (int n = 0; n < kMostShares / 32; ++n) {
    const int shares = n * 32 + lane_index() + 1;
    const float items = work_tiles * static_cast<float>(shares);
    const bool has_room = shares == 1 || (items <= static_cast<float>(partials) &&
                                          longest >= shares * kFewestTilesOfItem);
    uses[n] = has_room ? use_of(items, static_cast<float>(sm_count)) : 0.0f;
    best = fmaxf(best, uses[n]);
  }
  best = fminf(warp_reduce(best, [](float a, float b) { return fmaxf(a, b); }), kGoodUse);
  int first = 1;
#pragma unroll
  for (int n = kMostShares / 32 - 1; n >= 0; --n) {
    const u32 lanes = __ballot_sync(kAllLanes, uses[n] >= best);
    if (lanes != 0) first = n * 32 + __ffs(static_cast<int>(lanes));
  }
  return first;
}

/// By a whole warp.
template <class Config, class Args>
__device__ __forceinline__ Cut choose_cut(const Args& args) {
  static_assert(Config::kVBits == 16 || Config::kSplitItems == 1,
                "e4m3 weights depend on the tiles before");
  if constexpr (Config::kSplitItems > 0) return {1, Config::kSplitItems};
  float tiles = 0.0f;
  int longest = 0;
  for (int b = lane_index(); b < args.attend.n_b; b += 32) {
    const SequenceWork work = work_of<Config>(args, b);
    if (work.q_tiles == 0) continue;
    tiles += static_cast<float>(work.q_tiles) * static_cast<float>(work.k_tiles);
    longest = larger(longest, work.k_tiles);
  }
  tiles = warp_reduce(tiles, [](float a, float b) { return a + b; });
  longest = warp_reduce(longest, [](int a, int b) { return larger(a, b); });
  if (longest == 0) return {1, 1};
  const float heads = static_cast<float>(heads_of_tiles<Config>(args));
  return {longest, choose_shares(tiles * heads / static_cast<float>(longest), longest,
                                 args.batch_schedule.partials, args.batch_schedule.sm_count)};
}

template <class Config>
__device__ __forceinline__ int shares_of(const SequenceWork& work, const Cut& cut) {
  if constexpr (Config::kSplitItems > 0)
    return larger(smaller(Config::kSplitItems, work.k_tiles), 1);
  return larger(static_cast<int>(static_cast<long long>(work.k_tiles) * cut.shares / cut.longest),
                1);
}

/// Key tiles of the longest item; less than those of any other where there is none.
__device__ __forceinline__ int item_length(const SequenceWork& work, int shares) {
  return work.q_tiles == 0 ? -1 : ceil_div(work.k_tiles, shares);
}

/// What stands before a sequence in the schedule.
struct Before {
  int sequences = 0, items = 0, partials = 0;
};

/// By a whole warp.
template <class Config, class Args>
__device__ __forceinline__ Before find_before(const Args& args, const Cut& cut, int b, int length) {
  const int heads = heads_of_tiles<Config>(args);
  Before before;
  for (int other = lane_index(); other < args.attend.n_b; other += 32) {
    const SequenceWork work = work_of<Config>(args, other);
    const int shares = shares_of<Config>(work, cut), its_length = item_length(work, shares);
    if (its_length < length || (its_length == length && other >= b)) continue;
    const int items = work.q_tiles * heads * shares;
    before.sequences += 1;
    before.items += items;
    before.partials += shares > 1 ? items : 0;
  }
  const auto add = [](int a, int b) { return a + b; };
  return {warp_reduce(before.sequences, add), warp_reduce(before.items, add),
          warp_reduce(before.partials, add)};
}

/// `first`: elements before the first row.
template <class Element>
__device__ __forceinline__ void move_map(TensorMap* map, const TensorArg& tensor, long long first,
                                         int rows) {
  set_map_data(map, static_cast<Element*>(tensor.data) + first);
  set_map_tokens(map, larger(rows, 1));
}

/// The same of rows that a kernel has made: they begin with the sequence's piece of the workspace.
template <class Element, class Args>
__device__ __forceinline__ void move_map_of_made_rows(TensorMap* map, const Args& args,
                                                      const TensorArg& tensor, int b, int rows) {
  move_map<Element>(map, tensor, elements_to_piece<Element>(args, b), rows);
}

/// A copy of the launch's map becomes that of a sequence.
template <class Config, class Args>
__device__ __forceinline__ void cut_map(TensorMap* own, int map, const Args& args, int b) {
  using Element = typename Config::Element;
  const AttendArgs& attend = args.attend;
  const SequenceWork work = work_of<Config>(args, b);
  if (map == kSequenceOutput) {
    move_map<Element>(
        own, attend.o,
        first_result<Config, Element>(args, b, work.q_begin, attend.o.stride_b, attend.o.stride_n),
        work.n_q);
  } else if (map == kSequenceQueries) {
    if constexpr (query_mean_tokens<Config>() > 1 || permutes<Config>()) {
      move_map_of_made_rows<Element>(own, args, attend.q, b, work.n_q);
    } else {
      move_map<Element>(own, attend.q, work.q_begin * attend.q.stride_n, work.n_q);
    }
  } else if constexpr (attends_to_pages<Config>()) {  // values
    if (work.n_k > 0) set_map_tokens(own, (work.n_k - 1) % args.sequences.page_tokens + 1);
  } else {
    const TensorArg& tensor = map == kSequenceKeys ? attend.k : attend.v;
    if constexpr (makes_keys<Config>()) {
      move_map_of_made_rows<Element>(own, args, tensor, b, work.n_k);
    } else {
      move_map<KvElement<Config>>(own, tensor, args.sequences.k_begin[b] * tensor.stride_n,
                                  work.n_k);
    }
  }
}

/// By a whole warp. Eight lanes copy a map, and the first of them moves and cuts it.
template <class Config, class Args>
__device__ __forceinline__ void make_maps(const Args& args, int b) {
  constexpr int kLanes = sizeof(TensorMap) / sizeof(uint4);
  const int map = lane_index() / kLanes, part = lane_index() % kLanes;
  const bool is_made = has_own_map<Config>(map);
  TensorMap* const own = args.batch_schedule.maps + b * kSequenceMaps + map;
  const TensorMap* const launch = &args.maps.q + map;  // q, k, v, o, as SequenceMap has them
  if (is_made) copy_map_part(own, *launch, part);
  __syncwarp();
  if (is_made && part == 0) cut_map<Config>(own, map, args, b);
  __syncwarp();
  publish_maps();
}

/// Arrivals begin at 0: those that fall to a part, by all threads of a block.
template <class Config, int kThreads, class Args>
__device__ __forceinline__ void clear_arrivals(const Args& args, int part, int parts) {
  const int counters = args.batch_schedule.partials * 4 * Config::kWarpgroups;
  for (int n = part * kThreads + thread_index(); n < counters; n += parts * kThreads)
    args.batch_schedule.arrivals[n] = 0;
}

/// Keys and values of so many tokens of a KV head stay in L2 beside what passes through it.
template <class Config>
constexpr int tokens_in_cache() {
  constexpr int kElements = Config::kHeadDim + head_dim_v<Config>();  // of a token
  return (32 << 20) / (static_cast<int>(sizeof(KvElement<Config>)) * kElements);
}

/// Heads of tiles in a group: those of as many KV heads as stay in L2 together, but a number of
/// these that divides all, so that no group is smaller than the others.
template <class Config, class Args>
__device__ __forceinline__ int heads_of_group(const Args& args, int n_k) {
  const int heads = args.attend.n_h / args.attend.heads_per_kv;
  int group = larger(smaller(tokens_in_cache<Config>() / larger(n_k, 1), heads), 1);
  while (heads % group != 0) --group;
  return packs_heads<Config>() ? group : group * args.attend.heads_per_kv;
}

/// By a whole warp.
template <class Config, class Args>
__device__ __forceinline__ void schedule_sequence(const Args& args, const Cut& cut, int b) {
  const SequenceWork work = work_of<Config>(args, b);
  const int shares = shares_of<Config>(work, cut);
  const Before before = find_before<Config>(args, cut, b, item_length(work, shares));
  if (lane_index() != 0) return;
  const int heads = heads_of_tiles<Config>(args);
  const int group = heads_of_group<Config>(args, work.n_k);
  int k_begin = 0;
  if constexpr (!attends_to_pages<Config>() && !makes_keys<Config>())
    k_begin = args.sequences.k_begin[b];
  args.batch_schedule.sequences[before.sequences] = {b,
                                                     work.q_begin,
                                                     work.n_q,
                                                     k_begin,
                                                     work.n_k,
                                                     work.q_tiles,
                                                     before.items,
                                                     before.partials,
                                                     count_divisor(shares),
                                                     count_divisor(group),
                                                     count_divisor(larger(group * work.q_tiles, 1)),
                                                     {}};
  args.batch_schedule.first_items[before.sequences] = before.items;
  if (before.sequences == args.attend.n_b - 1)
    args.batch_schedule.first_items[args.attend.n_b] = before.items + work.q_tiles * heads * shares;
}

/// By all threads of a block, together; `place`: of shared memory, for a number that they share.
/// Behind it each of them sees the whole schedule, and the maps after acquire_map. The first part
/// is asked for before lengths are read, which takes as long.
template <class Config, int kThreads, class Args>
__device__ __forceinline__ void schedule_sequences(const Args& args, int& place) {
  constexpr int kSequences = kThreads / 32 / 2;
  u32* const taken = args.schedule.next_row + kTakenParts;
  u32* const made = args.schedule.next_row + kMadeParts;
  const int parts = ceil_div(args.attend.n_b, kSequences);
  int next = 0;
  if (thread_index() == 0) next = static_cast<int>(take_number(taken));
  const Cut cut = choose_cut<Config>(args);
  while (true) {
    if (thread_index() == 0) place = next;
    __syncthreads();
    const int part = place;
    if (part >= parts) break;
    clear_arrivals<Config, kThreads>(args, part, parts);
    const int b = part * kSequences + warp_index() % kSequences;
    if (b < args.attend.n_b) {
      if (warp_index() < kSequences) {
        schedule_sequence<Config>(args, cut, b);
      } else if (warp_index() < 2 * kSequences) {
        make_maps<Config>(args, b);
      }
    }
    __syncthreads();
    if (thread_index() == 0) {
      take_number_in_order(made);
      next = static_cast<int>(take_number(taken));
    }
  }
  if (thread_index() == 0) await_number_in_order(made, static_cast<u32>(parts));
  __syncthreads();
}

}  // namespace lacuna
