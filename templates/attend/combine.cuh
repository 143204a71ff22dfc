// `combine`: the partial results of split work tiles (pipeline/split_kv.cuh) become O and LSE.
//
//   LSE = log(sum over shares of exp(LSE_s)),  O = sum over shares of exp(LSE_s - LSE) * O_s
//
// A share that saw nothing has no weight; a row that saw nothing in any has O = 0 and LSE = -inf.
// Without a denominator O is the plain sum over the shares that saw a key.
// A sink (attend/row_ends.cuh) is one more term of the sum here, and in no share.
#pragma once

#include "arch/approx.cuh"
#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/attend_args.cuh"
#include "args/expr.cuh"
#include "args/split_args.cuh"
#include "attend/head_dims.cuh"
#include "attend/partial_results.cuh"
#include "attend/row_ends.cuh"
#include "base/math.cuh"
#include "pipeline/sequences.cuh"
#include "pipeline/split_kv.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// The query of a thread, and the first of its elements.
struct CombinedRow {
  int b, h, q, column;
};

/// Weights of the shares relative to one another, and what follows of them for the row.
template <int kShares>
struct ShareWeights {
  float weight[kShares];
  float sum = 0.0f;
  float heaviest_lse;  ///< LSE of the heaviest share

  __device__ __forceinline__ ShareWeights(const float* lse, long long tokens) {
    float largest = -kInfinity;
#pragma unroll
    for (int s = 0; s < kShares; ++s) {
      weight[s] = lse[s * tokens];
      largest = fmaxf(largest, weight[s]);
    }
    heaviest_lse = largest == -kInfinity ? 0.0f : largest;
#pragma unroll
    for (int s = 0; s < kShares; ++s) {
      weight[s] = exp2_approx((weight[s] - heaviest_lse) * kLog2E);
      sum += weight[s];
    }
  }

  __device__ __forceinline__ float lse() const {
    return sum == 0.0f ? -kInfinity : heaviest_lse + log2_approx(sum) * kLn2;
  }
};

/// What a row's O is divided by; 0: it has seen no key.
template <class Config, class Hooks, class Args, class Shares>
__device__ __forceinline__ float combined_sum(const Args& args, const CombinedRow& row,
                                              const Shares& shares) {
  if constexpr (!has_denominator<Config>()) {
    return 1.0f;
  } else if constexpr (has_sink<Config>()) {
    const float sink = Hooks::sink(args, row.q, row.h, row.b);
    return with_sink(shares.sum, (sink - shares.heaviest_lse) * kLog2E);
  } else {
    return shares.sum;
  }
}

template <class Config, class Hooks, class Args, class Shares>
__device__ __forceinline__ float combined_lse(const Args& args, const CombinedRow& row,
                                              const Shares& shares) {
  if constexpr (has_sink<Config>()) {
    const float sink = Hooks::sink(args, row.q, row.h, row.b);
    const float log2_sum = log2_of_sum(shares.lse() * kLog2E, sink * kLog2E);
    return lse_is_base_2<Config>() ? log2_sum : log2_sum * kLn2;
  } else {
    return lse_is_base_2<Config>() ? shares.lse() * kLog2E : shares.lse();
  }
}

/// Four neighbouring elements of a row.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void combine_elements(const Args& args, const CombinedRow& row) {
  using Element = typename Config::Element;
  const AttendArgs& attend = args.attend;
  const long long heads = static_cast<long long>(attend.n_b) * attend.n_h;
  const long long tokens = heads * attend.n_q;
  const long long head = static_cast<long long>(row.b) * attend.n_h + row.h;
  const long long token = head * attend.n_q + row.q;
  const ShareWeights<SplitKv<Config>::kItems> shares(args.split.partial_lse + token, tokens);
  constexpr int kHeadDim = head_dim_v<Config>();
  const float* partial = args.split.partial_o + token * kHeadDim + row.column;
  float o[kCombinedElements] = {};
#pragma unroll
  for (int s = 0; s < SplitKv<Config>::kItems; ++s) {
    const float4 part = *reinterpret_cast<const float4*>(partial + s * tokens * kHeadDim);
    o[0] = fmaf(shares.weight[s], part.x, o[0]);
    o[1] = fmaf(shares.weight[s], part.y, o[1]);
    o[2] = fmaf(shares.weight[s], part.z, o[2]);
    o[3] = fmaf(shares.weight[s], part.w, o[3]);
  }
  const float sum = combined_sum<Config, Hooks>(args, row, shares);
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  Element* target = static_cast<Element*>(attend.o.data) + row.b * attend.o.stride_b +
                    row.h * attend.o.stride_h + row.q * attend.o.stride_n + row.column;
  *reinterpret_cast<uint2*>(target) = make_uint2(pack<Element>(o[0] * inverse, o[1] * inverse),
                                                 pack<Element>(o[2] * inverse, o[3] * inverse));
  if (!Config::kWritesLse || attend.lse.data == nullptr || row.column != 0) return;
  attend.lse.data[row.b * attend.lse.stride_b + row.h * attend.lse.stride_h + row.q] =
      combined_lse<Config, Hooks>(args, row, shares);
}

/// A block takes as many queries of a head as it has threads for.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void combine_shares(const Args& args) {
  constexpr int kRowThreads = head_dim_v<Config>() / kCombinedElements;
  constexpr int kRows = Config::kThreads / kRowThreads;
  static_assert(head_dim_v<Config>() % kCombinedElements == 0, "a row is whole threads");
  const int blocks = ceil_div(args.attend.n_q, kRows);
  const int head = block_index() / blocks;
  const int row = thread_index() / kRowThreads;
  const int q = (block_index() - head * blocks) * kRows + row;
  if (row >= kRows || q >= args.attend.n_q) return;
  const int b = head / args.attend.n_h;
  const CombinedRow combined{b, head - b * args.attend.n_h, q,
                             (thread_index() - row * kRowThreads) * kCombinedElements};
  if (is_beyond<Config>(head, args.attend.n_h)) return;
  combine_elements<Config, Hooks>(args, combined);
}

}  // namespace lacuna
