// Means of neighbouring keys and values, in whose place a branch attends to them: attend's k or v
// [n] = the mean of the caller's tokens n * kTokens and those behind it, the last one of those that
// are left. Summed in f32.
#pragma once

#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/expr.cuh"
#include "args/predict_args.cuh"
#include "attend/head_dims.cuh"
#include "loader/token_rows.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// Config::kTensor 1: k, 2: v. A block makes as many means of a head as it has threads for.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void token_means(const Args& args) {
  using Element = typename Config::Element;
  constexpr int kWidth = Config::kTensor == 1 ? Config::kHeadDim : head_dim_v<Config>();
  constexpr int kRowThreads = kWidth / kMeanElements;
  constexpr int kRows = Config::kThreads / kRowThreads;
  static_assert(kWidth % kMeanElements == 0, "a row is whole threads");
  const AttendArgs& attend = args.attend;
  const int heads = attend.n_h / attend.heads_per_kv;
  const int blocks = ceil_div(attend.n_k, kRows);
  const int head = block_index() / blocks;
  if (is_beyond<Config>(head, heads)) return;
  const int row = thread_index() / kRowThreads;
  const int n = (block_index() - head * blocks) * kRows + row;
  if (row >= kRows || n >= attend.n_k) return;
  const int b = head / heads, h = head - b * heads;
  const int column = (thread_index() - row * kRowThreads) * kMeanElements;
  const TensorArg& source = Config::kTensor == 1 ? args.predict.caller_k : args.predict.caller_v;
  const TensorArg& target = Config::kTensor == 1 ? attend.k : attend.v;
  const int first = n * Config::kTokens;
  const int end = min(first + Config::kTokens, Hooks::key_tokens(args));
  float sum[kMeanElements] = {};
  for (int token = first; token < end; ++token) {
    const uint4 packed = *reinterpret_cast<const uint4*>(
        stored_element_of<Config>(args, source, b, h, token, column));
    const unsigned words[] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int e = 0; e < kMeanElements; e += 2) {
      sum[e] += unpack_low<Element>(words[e / 2]);
      sum[e + 1] += unpack_high<Element>(words[e / 2]);
    }
  }
  const float inverse = 1.0f / static_cast<float>(end - first);
  *reinterpret_cast<uint4*>(element_of<Element>(target, b, h, n, column)) =
      make_uint4(pack<Element>(sum[0] * inverse, sum[1] * inverse),
                 pack<Element>(sum[2] * inverse, sum[3] * inverse),
                 pack<Element>(sum[4] * inverse, sum[5] * inverse),
                 pack<Element>(sum[6] * inverse, sum[7] * inverse));
}

}  // namespace lacuna
