// Means of neighbouring tokens, in whose place a branch attends to keys and values, or queries
// attend: attend's q, k or v [n] = the mean of the caller's tokens n * kTokens and those behind it,
// the last one of those that are left. Summed in f32. Neighbours are those of the computation's
// order, where that is not the caller's.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/expr.cuh"
#include "args/predict_args.cuh"
#include "attend/head_dims.cuh"
#include "loader/stored_rows.cuh"
#include "loader/token_order.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// Means and tokens of a head, and how many heads there are.
struct MeansSide {
  const TensorArg &source, &target;
  int means, tokens, heads;
};
template <class Config, class Hooks, class Args>
__device__ __forceinline__ MeansSide means_side(const Args& args) {
  const AttendArgs& attend = args.attend;
  if constexpr (Config::kTensor == 0) {
    return {args.predict.caller_q, attend.q, attend.n_q, Hooks::query_tokens(args), attend.n_h};
  } else {
    const int tokens = Hooks::key_tokens(args), heads = attend.n_h / attend.heads_per_kv;
    if constexpr (Config::kTensor == 1)
      return {args.predict.caller_k, attend.k, attend.n_k, tokens, heads};
    else
      return {args.predict.caller_v, attend.v, attend.n_k, tokens, heads};
  }
}

/// 16 bytes of a token of q, or of a stored key or value.
template <class Config, class Args>
__device__ __forceinline__ uint4 token_chunk(const Args& args, const TensorArg& source, int b,
                                             int h, int token, int column) {
  constexpr bool kInPages = batch_layout<Config>() == BatchLayout::kPages;
  constexpr KvTensor kTensor = Config::kTensor == 1 ? KvTensor::kKeys : KvTensor::kValues;
  if constexpr (Config::kTensor == 0) {
    return query_row<Config>(source, b, h, token, column).chunk();
  } else {
    return stored_row<Config, kTensor, kInPages>(args, source, b, h, token, column).chunk();
  }
}

/// Config::kTensor 0: q, 1: k, 2: v. A block makes as many means of a head as it has threads for.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void token_means(const Args& args) {
  using Element = typename Config::Element;
  constexpr int kWidth = Config::kTensor == 2 ? head_dim_v<Config>() : Config::kHeadDim;
  constexpr int kRowThreads = kWidth / kMeanElements;
  constexpr int kRows = Config::kThreads / kRowThreads;
  static_assert(kWidth % kMeanElements == 0, "a row is whole threads");
  const MeansSide side = means_side<Config, Hooks>(args);
  const int blocks = ceil_div(side.means, kRows);
  const int head = block_index() / blocks;
  if (is_beyond<Config>(head, side.heads)) return;
  const int row = thread_index() / kRowThreads;
  const int n = (block_index() - head * blocks) * kRows + row;
  if (row >= kRows || n >= side.means) return;
  const int b = head / side.heads, h = head - b * side.heads;
  const int column = (thread_index() - row * kRowThreads) * kMeanElements;
  const int first = n * Config::kTokens;
  const int end = min(first + Config::kTokens, side.tokens);
  float sum[kMeanElements] = {};
  for (int token = first; token < end; ++token) {
    const int place = callers_token<Config>(args, token, side.tokens);
    const uint4 packed = token_chunk<Config>(args, side.source, b, h, place, column);
    const unsigned words[] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int e = 0; e < kMeanElements; e += 2) {
      sum[e] += unpack_low<Element>(words[e / 2]);
      sum[e + 1] += unpack_high<Element>(words[e / 2]);
    }
  }
  const float inverse = 1.0f / static_cast<float>(end - first);
  *reinterpret_cast<uint4*>(element_of<Element>(side.target, b, h, n, column)) =
      make_uint4(pack<Element>(sum[0] * inverse, sum[1] * inverse),
                 pack<Element>(sum[2] * inverse, sum[3] * inverse),
                 pack<Element>(sum[4] * inverse, sum[5] * inverse),
                 pack<Element>(sum[6] * inverse, sum[7] * inverse));
}

}  // namespace lacuna
