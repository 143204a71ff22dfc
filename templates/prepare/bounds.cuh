// Of each key tile of the predictor, the smallest and the largest of each element: bounds of the
// products of its keys with any query. A warp takes a tile, a lane neighbouring elements; NaN and
// infinity count as 0, as in means.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/predict_args.cuh"
#include "base/math.cuh"
#include "loader/stored_rows.cuh"

namespace lacuna {

/// predict.k_summary. Config: kTileK.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void bound_keys(const Args& args) {
  using Element = typename Config::Element;
  constexpr int kHeadDim = Config::kHeadDim;
  const int tiles = args.predict.keep_k_tiles, heads = args.attend.n_h / args.attend.heads_per_kv;
  const int number = block_index() * (Config::kThreads / 32) + warp_index();
  const int head = number / tiles, j = number - head * tiles;
  if (head >= args.attend.n_b * heads) return;
  const int b = head / heads, h = head - b * heads;
  float* const bounds = args.predict.k_summary + static_cast<long long>(number) * (2 * kHeadDim);
  for (int column = 2 * lane_index(); column < kHeadDim; column += 64) {
    const int end = smaller((j + 1) * Config::kTileK, args.attend.n_k);
    float2 smallest = {kInfinity, kInfinity}, largest = {-kInfinity, -kInfinity};
#pragma unroll 4
    for (int token = j * Config::kTileK; token < end; ++token) {
      const u32 pair =
          stored_row<Config, KvTensor::kKeys>(args, args.attend.k, b, h, token, column).pair();
      float2 x = {unpack_low<Element>(pair), unpack_high<Element>(pair)};
      if (!(fabsf(x.x) < kInfinity)) x.x = 0.0f;
      if (!(fabsf(x.y) < kInfinity)) x.y = 0.0f;
      smallest = {fminf(smallest.x, x.x), fminf(smallest.y, x.y)};
      largest = {fmaxf(largest.x, x.x), fmaxf(largest.y, x.y)};
    }
    *reinterpret_cast<float2*>(bounds + column) = smallest;
    *reinterpret_cast<float2*>(bounds + kHeadDim + column) = largest;
  }
}

}  // namespace lacuna
