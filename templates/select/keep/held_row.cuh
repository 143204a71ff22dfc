// A row whose scores are there, for a `keep` that takes its first tiles (select_first.cuh): a block
// holds keys in shared memory, and finds the last wanted tile by counting (score_bins.cuh).
//
// Loops are short, not unrolled over a row in registers: of code that runs once each instruction
// comes from a slow cache. A step takes several tiles of a thread, so that it reads them all before
// the first atomic or store.
#pragma once

#include "arch/approx.cuh"
#include "base/kinds.cuh"
#include "select/keep/score_bins.cuh"
#include "select/keep/select_first.cuh"

namespace lacuna {

/// Shared memory of the block.
template <int kMost>
struct HeldRowSmem {
  int keys[kMost];  ///< by tile; first p in their place
  union {
    int counts[kScoreBins];
    Candidates candidates;
  };
  FoundBin found;
  int taken;  ///< candidates
  ReduceScratch reduce;
  unsigned words[kMost / 32];
};

template <class Config, class Hooks, class Args>
class HeldRow {
  static constexpr int kThreads = Config::kThreads, kWarps = kThreads / 32;
  static constexpr int kEach = 32;   ///< tiles of a thread, at most
  static constexpr int kAtOnce = 8;  ///< in a step
  static constexpr int kLoads = 16;  ///< that are under way together
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  static constexpr bool kIsNormal = Config::kNormalise == Normalise::kSoftmax || kIsRowMax;
  using Team = BlockTeam<kThreads>;

 public:
  static constexpr int kMost = kEach * kThreads;  ///< tiles
  static constexpr bool kIsPossible =
      Config::kKeepsFirst && !kExcludesTiles<Config> && deciding_threads<Config>() == 0;
  using Smem = HeldRowSmem<kMost>;

  __device__ __forceinline__ HeldRow(const Args& args, const KeepRow& row, Smem& smem)
      : args_(args),
        row_(row),
        tiles_(args.predict.keep_k_tiles),
        warp_(warp_index()),
        smem_(smem),
        team_(smem.reduce),
        seen_(seen_by_thread<Config, Hooks, kThreads>(args, row)) {}

  /// Of logits by tile: the bits.
  __device__ __forceinline__ void decide(const float* logits) {
    load(logits);
    if constexpr (kIsNormal) normalise();
    int nans = 0;
    const ScoreBinning binning(put_keys(nans));
    const int visible = team_.sum(__popc(seen_));
    nans = team_.sum(nans);
    count(binning);
    const int ranks = count_kept_ranks<Config, Hooks>(args_, row_, visible);
    const int wanted = smaller(ranks, visible - nans);
    find_bin(smem_.found, smem_.counts, wanted, team_);
    const FoundBin found = smem_.found;
    const int missing = wanted - found.above;
    if (found.count == missing) {
      take_bins(binning, found.bin - 1, -1, ranks > 0);
    } else if (found.count <= kMostCandidates) {
      take_bins(binning, found.bin, found.bin, ranks > 0);
      take_first_candidates<kThreads>(smem_.candidates, found.count, missing,
                                      [&](int j) { atomicOr(&smem_.words[j / 32], 1u << j % 32); });
      team_.sync();
    } else {
      take_first(find_first(*this, ranks, visible, team_));
    }
    write_words(visible);
  }

  template <class Body>
  __device__ __forceinline__ void visit_keys(const Body& body) const {
    visit([&](int, const int(&keys)[kAtOnce]) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) body(keys[n]);
    });
  }

 private:
  /// Of tile e * kThreads + this thread's index: those past the last are not visible.
  __device__ __forceinline__ int& key(int e) const {
    return smem_.keys[e * kThreads + thread_index()];
  }
  __device__ __forceinline__ float& p(int e) const { return reinterpret_cast<float&>(key(e)); }
  __device__ __forceinline__ bool sees(int e) const { return (seen_ >> e & 1u) != 0; }

  /// body(first e, keys of kAtOnce tiles of this thread).
  template <class Body>
  __device__ __forceinline__ void visit(const Body& body) const {
#pragma unroll 1
    for (int first = 0; first * kThreads < tiles_; first += kAtOnce) {
      int keys[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) keys[n] = key(first + n);
      body(first, keys);
    }
  }

  /// p, or with a sum to divide by logits.
  __device__ __forceinline__ void load(const float* logits) const {
#pragma unroll 1
    for (int first = 0; first * kThreads < tiles_; first += kLoads) {
      float own[kLoads];
#pragma unroll
      for (int n = 0; n < kLoads; ++n) {
        const int j = (first + n) * kThreads + thread_index();
        own[n] = j < tiles_ ? logits[j] : -kInfinity;
      }
#pragma unroll
      for (int n = 0; n < kLoads; ++n) p(first + n) = sees(first + n) ? own[n] : -kInfinity;
    }
  }

  /// As normalise_row.cuh does.
  __device__ __forceinline__ void normalise() const {
    float largest = -kInfinity, sum = 0.0f;
    visit_keys([&](int logit) { largest = fmaxf(largest, __int_as_float(logit)); });
    largest = team_.max(largest);
    if (largest == -kInfinity) largest = 0.0f;
    const auto weight = [&](int logit) {
      return exp2_approx((__int_as_float(logit) - largest) * kLog2E);
    };
    visit_keys([&](int logit) { sum += weight(logit); });
    sum = team_.sum(sum);
    const float share = sum > 0.0f ? (kIsRowMax ? 1.0f : 1.0f / sum) : sum;
    visit([&](int first, const int(&logits)[kAtOnce]) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) p(first + n) = weight(logits[n]) * share;
    });
  }

  __device__ __forceinline__ ScoreRange put_keys(int& nans) const {
    ScoreRange range;
    visit([&](int first, const int(&numbers)[kAtOnce]) {
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const float own = __int_as_float(numbers[n]);
        const bool is_seen = sees(first + n);
        key(first + n) = tile_key(own, is_seen);
        if (is_seen) range.add(own), nans += own != own;
      }
    });
    range.merge(team_);
    return range;
  }

  __device__ __forceinline__ void count(const ScoreBinning& binning) const {
#pragma unroll
    for (int n = thread_index(); n < kScoreBins; n += kThreads) smem_.counts[n] = 0;
    if (thread_index() == 0) smem_.taken = 0;
    team_.sync();
    visit_keys([&](int key) {
      if (key != kUnseenKey && key != kNanKey) atomicAdd(&smem_.counts[binning(key)], 1);
    });
    team_.sync();
  }

  /// Of the tiles of a step; a lane writes one of its words.
  __device__ __forceinline__ void put_words(int first, const bool (&keep)[kAtOnce]) const {
    u32 own = 0;
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const u32 bits = __ballot_sync(kAllLanes, keep[n]);
      if (lane_index() == n) own = bits;
    }
    if (lane_index() < kAtOnce) smem_.words[(first + lane_index()) * kWarps + warp_] = own;
  }

  /// The tiles in bins above `last`; those in bin `listed` become candidates.
  __device__ __forceinline__ void take_bins(const ScoreBinning& binning, int last, int listed,
                                            bool keeps_nans) const {
    visit([&](int first, const int(&keys)[kAtOnce]) {
      bool keep[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const bool has_bin = keys[n] != kUnseenKey && keys[n] != kNanKey;
        const int bin = has_bin ? binning(keys[n]) : -2;
        keep[n] = bin > last || (keys[n] == kNanKey && keeps_nans);
        if (bin == listed) {
          const int place = atomicAdd(&smem_.taken, 1);
          smem_.candidates.keys[place] = keys[n];
          smem_.candidates.tiles[place] = (first + n) * kThreads + thread_index();
        }
      }
      put_words(first, keep);
    });
    team_.sync();
  }
  /// Where too many tiles would be candidates.
  __device__ __forceinline__ void take_first(const FirstTiles& tiles) const {
    int ties = 0;
    visit([&](int first, const int(&keys)[kAtOnce]) {
      bool keep[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        keep[n] = keys[n] > tiles.low;
        if (!tiles.has_ties) continue;
        const bool is_tie = keep[n] && keys[n] <= tiles.high;
        const int number = team_.count_before(is_tie, ties);
        if (is_tie) keep[n] = number < tiles.missing;
      }
      put_words(first, keep);
    });
    team_.sync();
  }

  __device__ __forceinline__ void write_words(int visible) const {
    unsigned* const kept = kept_words<Config>(args_, row_);
    const int words = args_.predict.keep_words;
    if constexpr (Config::kKeepsByPlace) {
      const auto parts = keep_parts<Hooks>(args_, row_);
      constexpr int kPlaces = 4;  // copies of what `keep` asks
#pragma unroll 1
      for (int first = 0; first * kThreads < tiles_; first += kPlaces) {
        unsigned bits[kPlaces];
#pragma unroll
        for (int n = 0; n < kPlaces; ++n) bits[n] = smem_.words[(first + n) * kWarps + warp_];
        u32 own = 0;
#pragma unroll
        for (int n = 0; n < kPlaces; ++n) {
          const int j = (first + n) * kThreads + thread_index();
          const TileValue value = value_of_first((bits[n] >> lane_index() & 1u) != 0, visible);
          const bool keep =
              sees(first + n) && keeps_tile<Config, Hooks>(args_, row_, parts, j, value, visible);
          const u32 kept_bits = __ballot_sync(kAllLanes, keep);
          if (lane_index() == n) own = kept_bits;
        }
        const int word = (first + lane_index()) * kWarps + warp_;
        if (lane_index() < kPlaces && word < words) kept[word] = own;
      }
    } else {
      for (int word = thread_index(); word < words; word += kThreads)
        kept[word] = smem_.words[word];
    }
    team_.sync();
  }

  const Args& args_;
  const KeepRow& row_;
  const int tiles_;
  const int warp_;
  Smem& smem_;
  const Team team_;
  const u32 seen_;  ///< bit e: of this thread's tile
};

}  // namespace lacuna
