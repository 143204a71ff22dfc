// Over all tokens of a head and each channel by itself: the mean of q or k, and the scale of v. NaN
// and infinity count as 0: smoothing works with any mean, and so they stay in their token.
// Blocks of 512 tokens leave partial results, which a second kernel brings together in order:
// the same bits from run to run.
#pragma once

#include "args/predict_args.cuh"
#include "base/math.cuh"
#include "loader/stored_rows.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// What statistics are taken of: Config::kTensor 0 q, 1 k: the sum; 2 v: the largest magnitude.
template <class Config>
struct Statistic {
  static constexpr bool kIsQuery = Config::kTensor == 0;
  static constexpr bool kIsSum = Config::kTensor != 2;

  __device__ __forceinline__ static float combine(float a, float b) {
    return kIsSum ? a + b : fmaxf(a, b);
  }
  /// Of one element.
  __device__ __forceinline__ static float of(float x) {
    const float finite = fabsf(x) < kInfinity ? x : 0.0f;
    return kIsSum ? finite : fabsf(finite);
  }
  template <class Args>
  __device__ __forceinline__ static int heads(const Args& args) {
    return kIsQuery ? args.attend.n_h : args.attend.n_h / args.attend.heads_per_kv;
  }
  template <class Args>
  __device__ __forceinline__ static int tokens(const Args& args) {
    return kIsQuery ? args.attend.n_q : args.attend.n_k;
  }
  template <class Args>
  __device__ __forceinline__ static const TensorArg& tensor(const Args& args) {
    return kIsQuery ? args.attend.q : Config::kTensor == 1 ? args.attend.k : args.attend.v;
  }
};

template <class Config, class Args>
__device__ __forceinline__ auto row_of(const Args& args, int b, int h, int token, int column) {
  using S = Statistic<Config>;
  constexpr KvTensor kTensor = Config::kTensor == 1 ? KvTensor::kKeys : KvTensor::kValues;
  if constexpr (S::kIsQuery) {
    return query_row<Config>(S::tensor(args), b, h, token, column);
  } else {
    return stored_row<Config, kTensor>(args, S::tensor(args), b, h, token, column);
  }
}

/// predict.partial[b, h, chunk] of 512 tokens of one head.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void token_statistics(const Args& args) {
  using S = Statistic<Config>;
  using Layout = TokenLayout<Config::kHeadDim, kStatisticsTokens, Config::kThreads>;
  using Element = typename Config::Element;
  static_assert(Layout::kWarps * Config::kHeadDim * 4 <= Config::kSmemBytes);
  extern __shared__ __align__(1024) unsigned char block_smem[];
  const int n = S::tokens(args), chunks = ceil_div(n, kStatisticsTokens);
  const int head = block_index() / chunks;
  if (is_beyond<Config>(head, S::heads(args))) return;
  const int b = head / S::heads(args), h = head - b * S::heads(args);
  const int first = (block_index() - head * chunks) * kStatisticsTokens + Layout::first_row();

  float result[Layout::kSteps][8] = {};
#pragma unroll 8
  for (int pass = 0; pass < Layout::kPasses; ++pass) {
    const int token = first + pass * Layout::kRowsPerPass;
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      uint4 chunk = {};
      if (token < n) chunk = row_of<Config>(args, b, h, token, Layout::column(step)).chunk();
      float x[8];
      unpack_chunk<Element>(x, chunk);
#pragma unroll
      for (int e = 0; e < 8; ++e) result[step][e] = S::combine(result[step][e], S::of(x[e]));
    }
  }

  float* rows = reinterpret_cast<float*>(block_smem);  // one for each warp
  float* own_row = rows + warp_index() * Config::kHeadDim;
#pragma unroll
  for (int step = 0; step < Layout::kSteps; ++step) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float& x = result[step][e];
#pragma unroll
      for (int lanes = Layout::kLanesPerRow; lanes < 32; lanes *= 2) {
        x = S::combine(x, __shfl_xor_sync(kAllLanes, x, lanes));
      }
      if (lane_index() < Layout::kLanesPerRow) {
        own_row[Layout::column(step) + e] = x;
      }
    }
  }
  __syncthreads();
  for (int column = thread_index(); column < Config::kHeadDim; column += Config::kThreads) {
    float x = 0.0f;
#pragma unroll
    for (int warp = 0; warp < Layout::kWarps; ++warp) {
      x = S::combine(x, rows[warp * Config::kHeadDim + column]);
    }
    args.predict.partial[static_cast<long long>(block_index()) * Config::kHeadDim + column] = x;
  }
}

/// q_mean, k_mean, or v_scale = largest / Config::kRange (1 where that is 0), of one head: each
/// thread takes four channels of every so many chunks.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void finish_statistics(const Args& args) {
  using S = Statistic<Config>;
  constexpr int kQuads = Config::kHeadDim / 4, kGroups = Config::kThreads / kQuads;
  static_assert(Config::kThreads * sizeof(float4) <= Config::kSmemBytes);
  extern __shared__ __align__(1024) unsigned char block_smem[];
  const int n = S::tokens(args), chunks = ceil_div(n, kStatisticsTokens);
  const long long head = block_index();
  const auto* const partial = reinterpret_cast<const float4*>(args.predict.partial) +
                              head * chunks * kQuads + thread_index() % kQuads;
  float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
  for (int chunk = thread_index() / kQuads; chunk < chunks; chunk += kGroups) {
    const float4 other = partial[static_cast<long long>(chunk) * kQuads];
    x = {S::combine(x.x, other.x), S::combine(x.y, other.y), S::combine(x.z, other.z),
         S::combine(x.w, other.w)};
  }
  reinterpret_cast<float4*>(block_smem)[thread_index()] = x;
  __syncthreads();
  for (int column = thread_index(); column < Config::kHeadDim; column += Config::kThreads) {
    const float* const sums = reinterpret_cast<const float*>(block_smem) + column;
    float all = 0.0f;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      all = S::combine(all, sums[group * Config::kHeadDim]);
    }
    const long long at = head * Config::kHeadDim + column;
    if constexpr (S::kIsSum) {
      (S::kIsQuery ? args.predict.q_mean : args.predict.k_mean)[at] = all / static_cast<float>(n);
    } else {
      args.predict.v_scale[at] = all == 0.0f ? 1.0f : all / Config::kRange;
    }
  }
}

}  // namespace lacuna
