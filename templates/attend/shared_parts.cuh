// Parts of a score formula that many scores of a warp share (compiler/expr/parts/shared_parts.hpp).
// Of a warp's 16 queries and 64 keys there are 79 distances and 64 keys: the lanes work a part out
// for them in turn, three or two each, and hand the values to one another.
//
// Of distances, counted from that of the warp's last query and first key on, a lane of row g and
// columns c and c + 1 wants, of its row g in block n of keys, 15 - g + c + 8 * n and the next; of
// row g + 8 those of the block before. Each register of the warp holds 32 distances, 8 of which the
// one before it has, too, so that all lanes find those of three blocks in one:
//
//   register          0         1         2
//   distances       0..31    24..55    48..79
//   blocks         -1 0 1     2 3 4     5 6 7       of row g
//
// Of keys each register holds those of four blocks.
#pragma once

#include "arch/warp.cuh"
#include "base/chosen.cuh"
#include "base/ints.cuh"
#include "base/pin.cuh"
#include "pipeline/lane_rows.cuh"

namespace lacuna {

/// Do the lanes of a warp work such parts out for one another?
template <class ScoreRow, class Lane>
inline constexpr bool kSharesDistances = ScoreRow::kRestHasDistance&& Lane::kAreNeighbours;
template <class ScoreRow, class Lane>
inline constexpr bool kSharesKeys = ScoreRow::kRestHasKey&& Lane::kAreNeighbours;

/// Blocks of keys whose distances are in one register, and distances from one to the next; blocks
/// whose keys are.
inline constexpr int kDistanceBlocks = 3, kDistanceStep = 8 * kDistanceBlocks;
inline constexpr int kKeyBlocks = 4;

/// What a lane has worked out, of kBlocks blocks of 8 keys.
template <int kBlocks, bool kExist = true>
struct SharedDistances {
  float of_distance[ceil_div(kBlocks + 1, kDistanceBlocks)];
};
template <int kBlocks>
struct SharedDistances<kBlocks, false> {};

template <int kBlocks, bool kExist = true>
struct SharedKeys {
  float of_key[ceil_div(kBlocks, kKeyBlocks)];
};
template <int kBlocks>
struct SharedKeys<kBlocks, false> {};

/// k: the lane's first key. `row`: of its first query; the keys at which it works out the warp's
/// distances may lie before the first token, or behind the last.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ SharedDistances<kBlocks> shared_distances(
    const Args& args, const typename Hooks::ScoreRow& row, const Lane& lane, int k, int b) {
  const int g = lane_index() / 4, column = lane_index() % 4 * 2;
  const int first_key = k - column + g - (kWarpRows - 1) + lane_index();
  SharedDistances<kBlocks> share;
#pragma unroll
  for (int n = 0; n < ceil_div(kBlocks + 1, kDistanceBlocks); ++n)
    share.of_distance[n] =
        Hooks::score_of_distance(args, row, lane.q(0), first_key + n * kDistanceStep, lane.h(0), b);
  return share;
}

/// The same of keys, which may lie behind the last token.
template <class Hooks, int kBlocks, class Args, class Lane>
__device__ __forceinline__ SharedKeys<kBlocks> shared_keys(const Args& args,
                                                           const typename Hooks::ScoreRow& row,
                                                           const Lane& lane, int k, int b) {
  const int first_key = k - lane_index() % 4 * 2 + lane_index();
  SharedKeys<kBlocks> share;
#pragma unroll
  for (int n = 0; n < ceil_div(kBlocks, kKeyBlocks); ++n)
    share.of_key[n] =
        Hooks::score_of_key(args, row, lane.q(0), first_key + n * 8 * kKeyBlocks, lane.h(0), b);
  return share;
}

/// What a lane's scores take of the shares of all lanes.
template <int kBlocks, bool kExist = true>
struct DistanceValues {
  /// at[n + 1]: of the lane's two keys of block n and its first row; at[n]: and its second row.
  float at[kBlocks + 1][2];

  __device__ __forceinline__ explicit DistanceValues(const SharedDistances<kBlocks>& share) {
    int first_lane = kWarpRows / 2 - 1 - lane_index() / 4 + lane_index() % 4 * 2;
    pin(first_lane);  // those of the other keys are made of it here, and take no registers before
#pragma unroll
    for (int n = 0; n <= kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[n][i] = __shfl_sync(kAllLanes, share.of_distance[n / kDistanceBlocks],
                               first_lane + n % kDistanceBlocks * 8 + i);
    }
  }
  /// i: of block n, as scores are counted.
  __device__ __forceinline__ float of_score(int n, int i) const { return at[n + 1 - i / 2][i % 2]; }
};
template <int kBlocks>
struct DistanceValues<kBlocks, false> {
  __device__ __forceinline__ explicit DistanceValues(const SharedDistances<kBlocks, false>&) {}
  __device__ __forceinline__ float of_score(int, int) const { return 0.0f; }
};

template <int kBlocks, bool kExist = true>
struct KeyValues {
  float at[kBlocks][2];  ///< of the lane's two keys of each block

  __device__ __forceinline__ explicit KeyValues(const SharedKeys<kBlocks>& share) {
    int first_lane = lane_index() % 4 * 2;
    pin(first_lane);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[n][i] = __shfl_sync(kAllLanes, share.of_key[n / kKeyBlocks],
                               first_lane + n % kKeyBlocks * 8 + i);
    }
  }
  __device__ __forceinline__ float of_score(int n, int i) const { return at[n][i % 2]; }
};
template <int kBlocks>
struct KeyValues<kBlocks, false> {
  __device__ __forceinline__ explicit KeyValues(const SharedKeys<kBlocks, false>&) {}
  __device__ __forceinline__ float of_score(int, int) const { return 0.0f; }
};

/// The same where scores are worked out one block after the other, in a loop: each value is fetched
/// when its score is due.
template <int kBlocks, bool kExist = true>
struct DistancesInTurn {
  const SharedDistances<kBlocks>& share;
  __device__ __forceinline__ explicit DistancesInTurn(const SharedDistances<kBlocks>& of)
      : share(of) {}
  __device__ __forceinline__ float of_score(int n, int i) const {
    const int block = n + 1 - i / 2;
    const int lane = kWarpRows / 2 - 1 - lane_index() / 4 + lane_index() % 4 * 2 + i % 2;
    return __shfl_sync(kAllLanes, chosen(share.of_distance, block / kDistanceBlocks),
                       lane + block % kDistanceBlocks * 8);
  }
};
template <int kBlocks>
struct DistancesInTurn<kBlocks, false> : DistanceValues<kBlocks, false> {
  using DistanceValues<kBlocks, false>::DistanceValues;
};

template <int kBlocks, bool kExist = true>
struct KeysInTurn {
  const SharedKeys<kBlocks>& share;
  __device__ __forceinline__ explicit KeysInTurn(const SharedKeys<kBlocks>& of) : share(of) {}
  __device__ __forceinline__ float of_score(int n, int i) const {
    return __shfl_sync(kAllLanes, chosen(share.of_key, n / kKeyBlocks),
                       lane_index() % 4 * 2 + n % kKeyBlocks * 8 + i % 2);
  }
};
template <int kBlocks>
struct KeysInTurn<kBlocks, false> : KeyValues<kBlocks, false> {
  using KeyValues<kBlocks, false>::KeyValues;
};

}  // namespace lacuna
