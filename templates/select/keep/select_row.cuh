// `keep` for every tile of a row, and the row's bits. A team, a block or a warp, takes a row.
//
// Without rank and mass a warp decides 32 tiles, one word of bits, at once. With them the team goes
// along the row by descending p and counts and sums what is visible; there each tile sets its own
// bit, in shared memory where the row is short enough.
//
// Loops along the row are not unrolled: most are over after a few rounds, and copies of `keep` and
// of the mask are what takes time to compile.
#pragma once

#include "base/optional_field.cuh"
#include "select/keep/keep_row.cuh"
#include "select/keep/order_tiles.cuh"
#include "select/keep/team.cuh"

namespace lacuna {

/// Shared memory of a block that decides a row.
struct SelectScratch {
  static constexpr int kWords = 128;
  ReduceScratch reduce;
  unsigned words[kWords];
};

/// What is known of the tiles of a row, by tile; null where `keep` does not read it.
struct RowValues {
  const float* p = nullptr;
  const float* score = nullptr;
  const int* order = nullptr;  ///< by descending p; for rank and mass
  int ordered = 0;             ///< of how many tiles; the others are not visible
};

template <class Config, class Hooks, class Team, class Args>
__device__ __forceinline__ int count_visible(const Args& args, const KeepRow& row,
                                             const Team& team) {
  if constexpr (!Config::kHasMask) return args.predict.keep_k_tiles;
  int visible = 0;
#pragma unroll 1
  for (int j = team.index(); j < args.predict.keep_k_tiles; j += Team::kSize) {
    visible += sees_tile<Config, Hooks>(args, row, j);
  }
  return team.sum(visible);
}

/// By index; value_of(a visible tile), which may read that tile's bit as it is so far.
template <class Config, class Hooks, class Team, class Args, class ValueOf>
__device__ __forceinline__ void select_each(const Args& args, const KeepRow& row, int visible,
                                            const Team& team, ValueOf value_of) {
  unsigned* const kept = kept_words<Config>(args, row);
  const auto parts = keep_parts<Hooks>(args, row);
#pragma unroll 1
  for (int word = team.warp(); word < args.predict.keep_words; word += Team::kSize / 32) {
    const int j = word * 32 + lane_index();
    bool keep = j < args.predict.keep_k_tiles && sees_tile<Config, Hooks>(args, row, j);
    if (keep) keep = keeps_tile<Config, Hooks>(args, row, parts, j, value_of(j), visible);
    const u32 bits = __ballot_sync(kAllLanes, keep);
    if (lane_index() == 0) kept[word] = bits;
  }
}

template <class Config, class Hooks, class Team, class Args>
__device__ __forceinline__ void select_by_index(const Args& args, const KeepRow& row,
                                                const RowValues& values, int visible,
                                                const Team& team) {
  select_each<Config, Hooks>(args, row, visible, team, [&](int j) {
    TileValue value;
    if (values.p != nullptr) value.p = values.p[j];
    if (Config::kUsesScore && values.score != nullptr) value.score = values.score[j];
    return value;
  });
}

/// The bits of a row to the same row of the other heads, which nothing tells apart; by a block.
template <class Config, class Args>
__device__ __forceinline__ void give_to_other_heads(const Args& args, const KeepRow& row) {
  const unsigned* const decided = kept_words<Config>(args, row);
  const long long head_words =
      static_cast<long long>(args.predict.keep_q_tiles) * args.predict.keep_words;
#pragma unroll 1
  for (int word = thread_index(); word < args.predict.keep_words; word += Config::kThreads) {
    const unsigned bits = decided[word];
    unsigned* kept = kept_words<Config>(args, row) + word;
#pragma unroll 4
    for (int h = 1; h < args.attend.n_h; ++h) *(kept += head_words) = bits;
  }
}

/// Does `keep` read the row's largest p?
LACUNA_OPTIONAL_FIELD(bool, reads_p_max, kUsesPMax, false)

/// keep_parts of a row in order, whose first tile has the largest p.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ typename Hooks::KeepParts parts_of_order(const Args& args,
                                                                    const KeepRow& row,
                                                                    const RowValues& values) {
  auto parts = keep_parts<Hooks>(args, row);
  if constexpr (reads_p_max<Config>())
    parts.p_max = values.ordered > 0 ? values.p[values.order[0]] : -kInfinity;
  return parts;
}

/// `words` has room for the row's bits, or `most_words` are fewer than that.
template <class Config, class Hooks, class Team, class Args>
__device__ __forceinline__ void select_by_order(const Args& args, const KeepRow& row,
                                                const RowValues& values, int visible,
                                                unsigned* words_of_team, int most_words,
                                                const Team& team) {
  const int words = args.predict.keep_words;
  unsigned* const kept = kept_words<Config>(args, row);
  unsigned* const bits = words <= most_words ? words_of_team : kept;
#pragma unroll 1
  for (int word = team.index(); word < words; word += Team::kSize) bits[word] = 0;
  team.sync();
  int visible_before = 0;
  float mass_before = 0.0f;
  const auto parts = parts_of_order<Config, Hooks>(args, row, values);
  for (int round = 0; round < values.ordered; round += Team::kSize) {
    const int place = round + team.index();
    const int j = place < values.ordered ? values.order[place] : 0;
    const bool sees = place < values.ordered && sees_tile<Config, Hooks>(args, row, j);
    TileValue value;
    value.p = sees ? values.p[j] : 0.0f;
    value.rank = team.count_before(sees, visible_before);
    if constexpr (Config::kUsesMass) {
      value.mass_before = team.sum_before(value.p, mass_before);
    }
    if (value.p != value.p) value.rank = 0, value.mass_before = 0.0f;  // no p is larger than NaN
    if (Config::kUsesScore && sees) value.score = values.score[j];
    if (sees && keeps_tile<Config, Hooks>(args, row, parts, j, value, visible)) {
      atomicOr(&bits[j / 32], 1u << j % 32);
    }
  }
  team.sync();
  if (bits == kept) return;
#pragma unroll 1
  for (int word = team.index(); word < words; word += Team::kSize) kept[word] = bits[word];
  team.sync();
}

/// All threads of the team; values were written before it met, and may be written again afterwards.
template <class Config, class Hooks, class Team, class Args>
__device__ __forceinline__ void select_row(const Args& args, const KeepRow& row,
                                           const RowValues& values, unsigned* words, int most_words,
                                           const Team& team) {
  const int visible = count_visible<Config, Hooks>(args, row, team);
  if constexpr (Config::kOrdersTiles) {
    select_by_order<Config, Hooks>(args, row, values, visible, words, most_words, team);
  } else {
    select_by_index<Config, Hooks>(args, row, values, visible, team);
    team.sync();
  }
}

/// By a block.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void select_row(const Args& args, const KeepRow& row,
                                           const RowValues& values, SelectScratch& scratch) {
  select_row<Config, Hooks>(args, row, values, scratch.words, SelectScratch::kWords,
                            DecidingTeam<Config>(scratch.reduce));
}

}  // namespace lacuna
