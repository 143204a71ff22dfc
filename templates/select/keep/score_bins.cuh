// Where the last of the first tiles of a row lies, found by counting: keys in bins of equal width
// between the least p and the largest, then the candidates of one bin, each compared with all of
// them. Each step is a single look at every key.
#pragma once

#include "select/keep/first_tiles.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

/// p that this thread has met, without NaN and infinity. It says how wide bins are, and nothing
/// else: keys outside are in the first bin or the last.
struct ScoreRange {
  float least = kInfinity, most = -kInfinity;

  __device__ __forceinline__ void add(float p) {
    if (fabsf(p) < kInfinity) least = fminf(least, p), most = fmaxf(most, p);
  }
  template <class Team>
  __device__ __forceinline__ void merge(const Team& team) {
    least = -team.max(-least), most = team.max(most);
  }
};

/// The bin of a key that is not of a NaN; ascends with it.
class ScoreBinning {
 public:
  __device__ __forceinline__ explicit ScoreBinning(const ScoreRange& range) {
    const float per_bin = static_cast<float>(kScoreBins - 1) / (range.most - range.least);
    const bool has_bins = per_bin > 0.0f && per_bin < kInfinity;
    least_ = has_bins ? range.least : 0.0f;
    per_bin_ = has_bins ? per_bin : 0.0f;
  }
  __device__ __forceinline__ int operator()(int key) const {
    // Infinity times 0 counts as 0.
    const float place = fmaxf((float_of_ordered(key) - least_) * per_bin_, 0.0f);
    return static_cast<int>(fminf(place, static_cast<float>(kScoreBins - 1)));
  }

 private:
  float least_, per_bin_;
};

/// The bin that the last wanted tile lies in; of none wanted, none.
struct FoundBin {
  int bin, above, count;  ///< tiles in bins above it, and its own
};

/// `counts`: of kScoreBins. `found` lies in shared memory. By a block; ends with a barrier.
template <int kThreads>
__device__ __forceinline__ void find_bin(FoundBin& found, const int* counts, int wanted,
                                         const BlockTeam<kThreads>& team) {
  constexpr int kOwn = kScoreBins / kThreads;
  static_assert(kOwn % 4 == 0);
  // From the last bin on; a thread looks at neighbours.
  const int end = kScoreBins - thread_index() * kOwn;
  int own[kOwn];
#pragma unroll
  for (int n = 0; n < kOwn; n += 4) {
    const int4 four = *reinterpret_cast<const int4*>(&counts[end - 4 - n]);
    own[n] = four.w, own[n + 1] = four.z, own[n + 2] = four.y, own[n + 3] = four.x;
  }
  int sum = 0, all = 0;
#pragma unroll
  for (int n = 0; n < kOwn; ++n) sum += own[n];
  if (thread_index() == 0) found = {kScoreBins, 0, 0};
  int before = team.sum_before(sum, all);
#pragma unroll
  for (int n = 0; n < kOwn; ++n) {
    if (before < wanted && before + own[n] >= wanted) found = {end - 1 - n, before, own[n]};
    before += own[n];
  }
  team.sync();
}

/// Keys and places of tiles in one bin, in shared memory.
struct Candidates {
  int keys[kMostCandidates], tiles[kMostCandidates];
};

/// take(tile) of the first `wanted` of them by key, ties by place. By a block.
template <int kThreads, class Take>
__device__ __forceinline__ void take_first_candidates(const Candidates& candidates, int count,
                                                      int wanted, const Take& take) {
#pragma unroll 1
  for (int own = thread_index(); own < count; own += kThreads) {
    const int key = candidates.keys[own], tile = candidates.tiles[own];
    int rank = 0;
#pragma unroll 4
    for (int n = 0; n < count; ++n) {
      const int other = candidates.keys[n];
      rank += other > key || (other == key && candidates.tiles[n] < tile);
    }
    if (rank < wanted) take(tile);
  }
}

}  // namespace lacuna
