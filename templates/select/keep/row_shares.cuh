// A long row for a `keep` that takes the first of its tiles (select_first.cuh), decided by several
// blocks. A block has a share of the tiles, whose keys it keeps in registers. Two kernels, because
// blocks of one may not wait for each other:
//   count_row_scores   counts the keys of all shares in bins of equal width;
//   decide_share       finds the bin that the last wanted tile lies in. Tiles above it are kept.
//                      Those in it are candidates, which the block that ends last compares with
//                      each other. If they are too many, it decides the row alone.
// The kernel that leaves the scores also says between which p they lie, and clears the bins.
#pragma once

#include "arch/atomic.cuh"
#include "select/keep/score_bins.cuh"
#include "select/keep/select_first.cuh"

namespace lacuna {

/// What is known of a row, in global memory. Behind it lie ranges of p, one of each share of the
/// kernel that leaves the scores.
struct RowBins {
  int counts[kScoreBins];
  int visible, nans;  ///< tiles; those whose p is NaN are in no bin
  u32 ended;          ///< blocks that have decided their share
  int candidates;
  Candidates list;

  __device__ __forceinline__ float2* ranges() { return reinterpret_cast<float2*>(this + 1); }
};
static_assert(sizeof(RowBins) == kRowBinsWords * 4, "the host leaves room for this");

/// Shared memory of a block that decides a share.
template <int kThreads>
struct RowShareSmem {
  static constexpr int kWords = kShareTiles / 32;
  union {
    OrderScratch<kThreads / 32> order;
    int counts[kScoreBins];
    Candidates candidates;
  };
  int taken[kMostCandidates];  ///< candidates that are kept
  int taken_count;
  u32 ended;
  FoundBin found;
  ReduceScratch reduce;
  unsigned words[kWords];
};

/// Config: one whose kKeepsFirst is set. kHeads: the bits are those of all heads, or of the row's.
template <class Config, class Hooks, class Args, bool kServesAllHeads>
class RowShare {
  static constexpr int kThreads = Config::kThreads, kWarps = kThreads / 32;
  static constexpr int kEach = kShareTiles / kThreads, kOwnBins = kScoreBins / kThreads;
  static_assert(kEach <= 32 && kShareTiles % kThreads == 0);
  using Team = BlockTeam<kThreads>;

 public:
  using Smem = RowShareSmem<kThreads>;

  /// `p` of the row; ranges of `scored` shares.
  __device__ __forceinline__ RowShare(const Args& args, const KeepRow& row, float* p, RowBins& bins,
                                      int scored, int share, Smem& smem)
      : args_(args),
        row_(row),
        p_(p),
        bins_(bins),
        first_(share * kShareTiles),
        smem_(smem),
        team_(smem.reduce),
        binning_(range_of_row(bins, scored, Team(smem.reduce))) {
    load();
  }

  /// Adds this share's keys to the bins.
  __device__ __forceinline__ void count() {
    int* const counts = smem_.counts;
#pragma unroll
    for (int n = 0; n < kOwnBins; ++n) counts[n * kThreads + thread_index()] = 0;
    team_.sync();
    int visible = 0, nans = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (keys_[e] == kUnseenKey) continue;
      ++visible;
      if (keys_[e] == kNanKey) {
        ++nans;
      } else {
        atomicAdd(&counts[binning_(keys_[e])], 1);
      }
    }
    team_.sync();
#pragma unroll
    for (int n = 0; n < kOwnBins; ++n) {
      const int bin = n * kThreads + thread_index(), own = counts[bin];
      if (own != 0) atomicAdd(&bins_.counts[bin], own);
    }
    visible = team_.sum(visible), nans = team_.sum(nans);
    if (thread_index() != 0) return;
    atomicAdd(&bins_.visible, visible);
    if (nans != 0) atomicAdd(&bins_.nans, nans);
  }

  /// Writes the bits of this share, of `shares`.
  __device__ __forceinline__ void decide(int shares) {
    visible_ = bins_.visible;
    const int ranks = count_kept_ranks<Config, Hooks>(args_, row_, visible_);
    const int wanted = smaller(ranks, visible_ - bins_.nans);
    find_bin(smem_.found, bins_.counts, wanted, team_);
    const int missing = wanted - smem_.found.above;
    takes_all_ = smem_.found.count == missing;
    has_candidates_ = !takes_all_ && smem_.found.count <= kMostCandidates;
    take_tiles(ranks > 0);
    team_.sync();
    if (thread_index() == 0) smem_.ended = take_number_in_order(&bins_.ended);
    team_.sync();
    if (takes_all_ || smem_.ended + 1 != static_cast<u32>(shares)) return;
    if (has_candidates_) {
      compare_candidates(missing);
    } else {
      select_first<Config, Hooks>(args_, row_, p_, smem_.order, smem_.reduce);
      if constexpr (kServesAllHeads) give_to_other_heads<Config>(args_, row_);
    }
  }

 private:
  __device__ __forceinline__ static ScoreRange range_of_row(RowBins& bins, int scored,
                                                            const Team& team) {
    ScoreRange range;
    for (int n = thread_index(); n < scored; n += kThreads) {
      const float2 own = bins.ranges()[n];
      range.least = fminf(range.least, own.x), range.most = fmaxf(range.most, own.y);
    }
    range.merge(team);
    return range;
  }

  /// Of tile first_ + e * kThreads + this thread's index.
  __device__ __forceinline__ int tile(int e) const {
    return first_ + e * kThreads + thread_index();
  }

  __device__ __forceinline__ void load() {
    const int tiles = args_.predict.keep_k_tiles;
    float p[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) p[e] = tile(e) < tiles ? p_[tile(e)] : 0.0f;
    const u32 seen = seen_by_thread<Config, Hooks, kThreads>(args_, row_, first_);
#pragma unroll
    for (int e = 0; e < kEach; ++e) keys_[e] = tile_key(p[e], (seen >> e & 1u) != 0);
  }

  /// Candidates are not kept here, unless `keep` takes their place at any rank.
  __device__ __forceinline__ void take_tiles(bool keeps_nans) {
    const auto parts = keep_parts<Hooks>(args_, row_);
    const int found = smem_.found.bin, own = warp_index();
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int key = keys_[e];
      bool keep = false;
      if (key == kNanKey) {
        keep = keeps_nans;
      } else if (key != kUnseenKey) {
        const int bin = binning_(key);
        keep = bin > found || (bin == found && takes_all_);
        if (bin == found && has_candidates_) {
          const int place = atomicAdd(&bins_.candidates, 1);
          bins_.list.keys[place] = key, bins_.list.tiles[place] = tile(e);
        }
      }
      if constexpr (Config::kKeepsByPlace) {
        if (key != kUnseenKey)
          keep = keeps_tile<Config, Hooks>(args_, row_, parts, tile(e),
                                           value_of_first(keep, visible_), visible_);
      }
      const u32 bits = __ballot_sync(kAllLanes, keep);
      if (lane_index() == 0) smem_.words[e * kWarps + own] = bits;
    }
    team_.sync();
    const int first = first_ / 32, words = smaller(args_.predict.keep_words - first, Smem::kWords);
    unsigned* const kept = kept_words<Config>(args_, row_) + first;
#pragma unroll 4
    for (int n = thread_index(); n < heads() * Smem::kWords; n += kThreads) {
      const int head = n / Smem::kWords, word = n % Smem::kWords;
      if (word < words) kept[head * words_of_head() + word] = smem_.words[word];
    }
  }

  __device__ __forceinline__ void compare_candidates(int missing) {
    const int count = smem_.found.count;
    for (int n = thread_index(); n < count; n += kThreads) {
      smem_.candidates.keys[n] = bins_.list.keys[n];
      smem_.candidates.tiles[n] = bins_.list.tiles[n];
    }
    if (thread_index() == 0) smem_.taken_count = 0;
    team_.sync();
    take_first_candidates<kThreads>(smem_.candidates, count, missing, [&](int j) {
      bool keep = true;
      if constexpr (Config::kKeepsByPlace) {
        keep = keeps_tile<Config, Hooks>(args_, row_, j, value_of_first(true, visible_), visible_);
      }
      if (keep) smem_.taken[atomicAdd(&smem_.taken_count, 1)] = j;
    });
    team_.sync();
    unsigned* const kept = kept_words<Config>(args_, row_);
    const int taken = smem_.taken_count;
#pragma unroll 4
    for (int n = thread_index(); n < heads() * taken; n += kThreads) {
      const int head = n / taken, j = smem_.taken[n - head * taken];
      atomicOr(&kept[head * words_of_head() + j / 32], 1u << j % 32);
    }
  }

  __device__ __forceinline__ int heads() const { return kServesAllHeads ? args_.attend.n_h : 1; }
  __device__ __forceinline__ long long words_of_head() const {
    return static_cast<long long>(args_.predict.keep_q_tiles) * args_.predict.keep_words;
  }

  const Args& args_;
  const KeepRow& row_;
  float* const p_;
  RowBins& bins_;
  const int first_;
  Smem& smem_;
  const Team team_;
  const ScoreBinning binning_;
  int keys_[kEach];
  int visible_ = 0;
  bool takes_all_ = false, has_candidates_ = false;
};

}  // namespace lacuna
