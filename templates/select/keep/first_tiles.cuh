// The first tiles of a row by p: where the last of them lies, for select_first.cuh.
#pragma once

#include "arch/count.cuh"
#include "base/ordered_bits.cuh"
#include "select/keep/order_tiles.cuh"
#include "select/keep/select_row.cuh"

namespace lacuna {

// Keys are integers in the order of p. The smallest key is that of a tile that is not visible. NaN
// has the largest key: no p is larger than NaN, so it ranks first.
inline constexpr int kNanKey = 0x7fffffff;
inline constexpr int kUnseenKey = -kNanKey - 1;

/// Both zeros are one.
__device__ __forceinline__ int tile_key(float p, bool sees) {
  const int key = p == p ? ordered_bits(p + 0.0f) : kNanKey;
  return sees ? key : kUnseenKey;
}

/// Of up to 32 * kEach tiles, in a warp's registers.
template <int kEach>
class WarpKeys {
  static constexpr int kTogether = 4;  ///< tiles of a lane, without a look at where the row ends
  static_assert(kEach % kTogether == 0);

 public:
  static constexpr bool kIsLoop = false;
  /// Bit e of `seen`: is tile e * 32 + lane visible? None is from `end` on.
  __device__ __forceinline__ WarpKeys(const float* p, u32 seen, int end)
      : end_(ceil_div(end, 32 * kTogether) * 32 * kTogether) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const bool sees = (seen >> e & 1u) != 0;
      keys_[e] = tile_key(sees ? p[e * 32 + lane_index()] : 0.0f, sees);
    }
  }
  /// body(first of 32 tiles, key of this lane's).
  template <class Body>
  __device__ __forceinline__ void visit(Body body) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (e % kTogether == 0 && e * 32 >= end_) break;
      body(e * 32, keys_[e]);
    }
  }
  template <class Body>
  __device__ __forceinline__ void visit_keys(Body body) const {
    visit([&](int, int key) { body(key); });
  }
  __device__ __forceinline__ int end() const { return end_; }

 private:
  int keys_[kEach];
  int end_;  ///< of the tiles that are visited
};

/// Of any number of tiles, in the place of p, by a block.
template <int kThreads>
class BlockKeys {
 public:
  static constexpr bool kIsLoop = true;  ///< `visit` has one copy of what it does
  static constexpr int kAhead = 4;       ///< keys that are under way meanwhile
  /// `scratch` is free once keys have replaced p.
  __device__ __forceinline__ BlockKeys(float* p, int count, OrderScratch<kThreads / 32>& scratch)
      : keys_(p), count_(count), scratch_(scratch) {}

  /// Of this thread's tiles; returns how many of them are visible.
  template <class Config, class Hooks, class Args>
  __device__ __forceinline__ int replace_p(const Args& args, const KeepRow& row) const {
    constexpr int kTogether = 8;  // are loaded before the first is stored
    int visible = 0;
#pragma unroll 1
    for (int first = 0; first < count_; first += 32 * kThreads) {
      const u32 seen = seen_by_thread<Config, Hooks, kThreads>(args, row, first);
      visible += __popc(seen);
      const int end = smaller(32, ceil_div(count_ - first, kThreads));
#pragma unroll 1
      for (int e = 0; e < end; e += kTogether) {
        float p[kTogether];
#pragma unroll
        for (int n = 0; n < kTogether; ++n) {
          const int j = first + (e + n) * kThreads + thread_index();
          p[n] = j < count_ ? keys_[j] : 0.0f;
        }
#pragma unroll
        for (int n = 0; n < kTogether; ++n) {
          const int j = first + (e + n) * kThreads + thread_index();
          if (j < count_) keys_[j] = __int_as_float(tile_key(p[n], (seen >> (e + n) & 1u) != 0));
        }
      }
    }
    return visible;
  }
  /// Of this thread's tile among the kThreads from `first` on.
  __device__ __forceinline__ int own(int first) const {
    const int j = first + thread_index();
    return j < count_ ? __float_as_int(keys_[j]) : kUnseenKey;
  }
  /// body(first of kThreads tiles, key of this thread's).
  template <class Body>
  __device__ __forceinline__ void visit(Body body) const {
    int next[kAhead];  // are there before what the body stores
#pragma unroll
    for (int n = 0; n < kAhead; ++n) next[n] = own(n * kThreads);
#pragma unroll 1
    for (int first = 0; first < count_; first += kThreads) {
      const int key = next[0];
#pragma unroll
      for (int n = 1; n < kAhead; ++n) next[n - 1] = next[n];
      next[kAhead - 1] = own(first + kAhead * kThreads);
      body(first, key);
    }
  }
  /// body(key): of several that are loaded together.
  template <class Body>
  __device__ __forceinline__ void visit_keys(Body body) const {
    constexpr int kTogether = 8;
#pragma unroll 1
    for (int first = 0; first < count_; first += kTogether * kThreads) {
      int own_keys[kTogether];
#pragma unroll
      for (int n = 0; n < kTogether; ++n) own_keys[n] = own(first + n * kThreads);
#pragma unroll
      for (int n = 0; n < kTogether; ++n) body(own_keys[n]);
    }
  }
  __device__ __forceinline__ int end() const { return count_; }
  __device__ __forceinline__ OrderScratch<kThreads / 32>& scratch() const { return scratch_; }

 private:
  float* keys_;
  int count_;
  OrderScratch<kThreads / 32>& scratch_;
};

/// Those of a row of up to kMost tiles once more, in registers: a bisection goes through them many
/// times.
template <int kThreads, int kEach>
class OwnKeys {
 public:
  static constexpr int kMost = kEach * kThreads;

  __device__ __forceinline__ OwnKeys(const BlockKeys<kThreads>& keys) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) keys_[e] = keys.own(e * kThreads);
    count_ = keys.end();
  }
  template <class Body>
  __device__ __forceinline__ void visit_keys(Body body) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (e % kTogether == 0 && e * kThreads >= count_) break;
      body(keys_[e]);
    }
  }

 private:
  static constexpr int kTogether = 4;  ///< without a look at where the row ends
  int keys_[kEach];
  int count_;
};

template <class Keys, class Team>
__device__ __forceinline__ int count_above(const Keys& keys, int bound, const Team& team) {
  int above = 0;
  keys.visit_keys([&](int key) { count_if_above(above, key, bound); });
  return team.sum(above);
}

/// What tells the first tiles of a row: all with keys above `high`, and of the others above `low`
/// all, or if `has_ties` the first `missing` by index.
struct FirstTiles {
  int high, low, missing;
  bool has_ties;
};

/// `wanted` tiles, and all whose p is NaN: they take no other's place.
template <class Keys, class Team>
__device__ __forceinline__ FirstTiles find_first(const Keys& keys, int wanted, int visible,
                                                 const Team& team) {
  if (wanted == 0) return {kNanKey, kNanKey, 0, false};
  int largest = kUnseenKey, below_least = kNanKey;
  keys.visit_keys([&](int key) {
    largest = larger(largest, key);
    // One less, and of a tile that is not visible the largest integer.
    below_least = smaller(below_least, static_cast<int>(static_cast<u32>(key) - 1u));
  });
  int high = team.max(largest), low = -team.max(-below_least);
  if (high == kNanKey) wanted = smaller(wanted + count_above(keys, kNanKey - 1, team), visible);
  int above_high = 0, above_low = visible;  // fewer than wanted; at least as many
#pragma unroll 1
  while (above_low > wanted && low + 1 < high) {
    const int middle = (low & high) + ((low ^ high) >> 1);
    const int above = count_above(keys, middle, team);
    if (above < wanted) {
      high = middle, above_high = above;
    } else {
      low = middle, above_low = above;
    }
  }
  return {high, low, wanted - above_high, above_low > wanted};
}

/// Keys that a team has in memory, as many as there are places in OrderScratch at most, and more
/// than none: those of one bin of a long row.
template <int kThreads, int kEach>
class BinKeys {
 public:
  __device__ __forceinline__ BinKeys(const int* keys, int count) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int n = e * kThreads + thread_index();
      keys_[e] = n < count ? keys[n] : kUnseenKey;
    }
  }
  template <class Body>
  __device__ __forceinline__ void visit_keys(Body body) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e) body(keys_[e]);
  }

 private:
  int keys_[kEach];
};

/// Neighbouring keys of a long row: from `low` to `high`, which both occur.
struct KeyRange {
  int low, high;
  __device__ __forceinline__ bool has(int key) const { return low <= key && key <= high; }
};
/// Of the keys that `counts` takes.
template <class Keys, class Team, class Counts>
__device__ __forceinline__ KeyRange range_of_keys(const Keys& keys, const Team& team,
                                                  const Counts& counts) {
  int low = kNanKey, high = kUnseenKey;
  keys.visit_keys([&](int key) {
    if (counts(key)) low = smaller(low, key), high = larger(high, key);
  });
  return {-team.max(-low), team.max(high)};
}

/// Of a long row, which would be read from memory in every round of a bisection: keys are counted
/// in bins of equal width between the least p and the largest, and the bisection goes through the
/// bin that the last wanted tile lies in. Of a bin that is too large for it bins are made again.
template <int kThreads, class Team>
__device__ __forceinline__ FirstTiles find_first_of_long_row(const BlockKeys<kThreads>& keys,
                                                             int wanted, int visible,
                                                             const Team& team) {
  constexpr int kBins = sizeof(keys.scratch().places) / sizeof(int), kOwn = kBins / kThreads;
  static_assert(kBins % kThreads == 0);
  int* const bins = keys.scratch().places[0];
  KeyRange range = range_of_keys(keys, team, [](int key) { return key != kUnseenKey; });
  if (wanted == 0 || range.high == kNanKey) return find_first(keys, wanted, visible, team);
  int above = 0, count = visible;  // tiles above the range, and in it
#pragma unroll 1
  while (true) {
    const int missing = wanted - above;
    if (range.low == range.high) return {range.high, range.low - 1, missing, count > missing};
    const float least = float_of_ordered(range.low);
    const float to_bin = static_cast<float>(kBins - 1) / (float_of_ordered(range.high) - least);
    if (!(to_bin > 0.0f && to_bin < kInfinity)) return find_first(keys, wanted, visible, team);
    const auto bin_of = [&](int key) {
      return smaller(static_cast<int>((float_of_ordered(key) - least) * to_bin), kBins - 1);
    };
#pragma unroll
    for (int n = 0; n < kOwn; ++n) bins[n * kThreads + thread_index()] = 0;
    team.sync();
    keys.visit_keys([&](int key) {
      if (range.has(key)) atomicAdd(&bins[bin_of(key)], 1);
    });
    team.sync();
    // From the largest on; a thread looks at neighbours.
    const int own_last = kBins - 1 - thread_index() * kOwn;
    int own = 0, all = 0;
#pragma unroll 1
    for (int n = 0; n < kOwn; ++n) own += bins[own_last - n];
    int before = team.sum_before(own, all);
    int found = -1, above_found = -1;
#pragma unroll 1
    for (int n = 0; n < kOwn; ++n) {
      own = bins[own_last - n];
      if (before < missing && before + own >= missing) found = own_last - n, above_found = before;
      before += own;
    }
    const int bin = team.max(found);
    above += team.max(above_found);
    count = bins[bin];
    team.sync();
    const auto is_in_bin = [&](int key) { return range.has(key) && bin_of(key) == bin; };
    if (count > kBins - 1) {
      range = range_of_keys(keys, team, is_in_bin);
      continue;
    }
    int* const taken = &bins[kBins - 1];  // behind the keys of the bin
    if (thread_index() == 0) *taken = 0;
    team.sync();
    keys.visit_keys([&](int key) {
      if (is_in_bin(key)) bins[atomicAdd(taken, 1)] = key;
    });
    team.sync();
    const FirstTiles tiles =
        find_first(BinKeys<kThreads, kOwn>(bins, count), wanted - above, count, team);
    team.sync();
    return tiles;
  }
}

/// Tiles of a thread, of a row that a block keeps in registers; 0: there are none for rows of any
/// length. The arguments of a sequence leave room for fewer.
LACUNA_OPTIONAL_FIELD(int, given_own_keys, kOwnKeys, -1)
template <class Config>
constexpr int own_keys() {
  if (given_own_keys<Config>() >= 0) return given_own_keys<Config>();
  return has_sequences<Config>() ? 16 : 32;
}

/// By a warp.
template <class Config, int kEach>
__device__ __forceinline__ FirstTiles find_first_of_row(const WarpKeys<kEach>& keys, int wanted,
                                                        int visible, const WarpTeam& team) {
  return find_first(keys, wanted, visible, team);
}
/// By a block.
template <class Config, int kThreads, class Team>
__device__ __forceinline__ FirstTiles find_first_of_row(const BlockKeys<kThreads>& keys, int wanted,
                                                        int visible, const Team& team) {
  if constexpr (own_keys<Config>() == 0) {
    return find_first(keys, wanted, visible, team);
  } else {
    using Own = OwnKeys<kThreads, own_keys<Config>()>;
    if (keys.end() <= Own::kMost) return find_first(Own(keys), wanted, visible, team);
    return find_first_of_long_row(keys, wanted, visible, team);
  }
}

}  // namespace lacuna
