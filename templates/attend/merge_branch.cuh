// `merge_branch`: attend's o (and lse) of one branch join the sum of those before it. The first
// branch makes the sum, the last one writes the caller's o.
//
//   weights:  sum += weight(q, h, b) * o
//   else:     sum = exp(before - lse) * sum + exp(own - lse) * o
//             where lse = log(exp(before) + exp(own))
//
// With kQueries, where o is of means of so many query tokens, each token takes the o of its mean.
//
// With `permute`, branches are computed in another order of tokens than the caller's. The sums are
// kept in that order; weights are read, and the results written, in the caller's.
//
// Rows without a key have o = 0 and lse = -inf in their branch, and add nothing.
#pragma once

#include "arch/approx.cuh"
#include "arch/pack.cuh"
#include "arch/warp.cuh"
#include "args/attend_args.cuh"
#include "args/branch_args.cuh"
#include "args/expr.cuh"
#include "args/predict_args.cuh"
#include "attend/head_dims.cuh"
#include "attend/row_ends.cuh"
#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "loader/token_order.cuh"
#include "pipeline/batch_layout.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// Query tokens of a row of o.
LACUNA_OPTIONAL_FIELD(int, queries_of_row, kQueries, 1)

template <class Config, class Hooks, class Args>
__device__ __forceinline__ int merged_rows(const Args& args) {
  if constexpr (queries_of_row<Config>() > 1) {
    return Hooks::query_tokens(args);
  } else {
    return args.attend.n_q;
  }
}

/// The query of a thread, and the first of its elements.
struct MergedRow {
  int b, h;
  int n;  ///< in the order of the computation
  int q;  ///< in that of the caller
  int column;
  long long token;  ///< of the contiguous sums
};

/// What a row of the sum so far, and one of the branch, are multiplied with.
struct BranchFactors {
  float before, own;
};

/// Of two softmaxes over different keys, as one over both; `lse` is that of both.
__device__ __forceinline__ BranchFactors factors_of_lse(float before, float own, float& lse) {
  const float largest = fmaxf(before, own);
  const float shift = largest == -kInfinity ? 0.0f : largest;
  const float before_weight = exp2_approx((before - shift) * kLog2E);
  const float own_weight = exp2_approx((own - shift) * kLog2E);
  const float sum = before_weight + own_weight;
  lse = sum == 0.0f ? -kInfinity : shift + log2_approx(sum) * kLn2;
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  return {before_weight * inverse, own_weight * inverse};
}

template <class Config>
constexpr bool is_last_branch() {
  return Config::kBranch + 1 == Config::kBranches;
}

/// All threads of a row read the LSE of before, and one writes: to the other half of the sums.
template <class Config, class Args>
__device__ __forceinline__ BranchFactors merge_lse(const Args& args, const MergedRow& row) {
  const AttendArgs& attend = args.attend;
  const long long tokens = static_cast<long long>(attend.n_b) * attend.n_h * attend.n_q;
  float* sum = args.branch.sum_lse + row.token;
  const float before = Config::kBranch == 0 ? -kInfinity : sum[(Config::kBranch + 1) % 2 * tokens];
  const float own =
      attend.lse.data[row.b * attend.lse.stride_b + row.h * attend.lse.stride_h + row.n];
  float lse;
  const BranchFactors factors = factors_of_lse(before, own, lse);
  if (row.column != 0) return factors;
  if constexpr (!is_last_branch<Config>()) {
    sum[Config::kBranch % 2 * tokens] = lse;
  } else if (const LseArg& target = args.predict.caller_lse; target.data != nullptr) {
    target.data[row.b * target.stride_b + row.h * target.stride_h + row.q] =
        lse_is_base_2<Config>() ? lse * kLog2E : lse;
  }
  return factors;
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ BranchFactors branch_factors(const Args& args, const MergedRow& row) {
  if constexpr (Config::kHasWeight) {
    return {1.0f, Hooks::branch_weight(args, row.q, row.h, row.b)};
  } else {
    return merge_lse<Config>(args, row);
  }
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void merge_elements(const Args& args, const MergedRow& row) {
  using Element = typename Config::Element;
  const TensorArg& own = args.attend.o;
  const BranchFactors factors = branch_factors<Config, Hooks>(args, row);
  const Element* from = static_cast<const Element*>(own.data) + row.b * own.stride_b +
                        row.h * own.stride_h + row.n / queries_of_row<Config>() * own.stride_n +
                        row.column;
  const uint4 packed = *reinterpret_cast<const uint4*>(from);
  const unsigned words[] = {packed.x, packed.y, packed.z, packed.w};
  float* sum = args.branch.sum_o + row.token * head_dim_v<Config>() + row.column;
  float o[kMergedElements];
#pragma unroll
  for (int n = 0; n < kMergedElements; n += 2) {
    o[n] = factors.own * unpack_low<Element>(words[n / 2]);
    o[n + 1] = factors.own * unpack_high<Element>(words[n / 2]);
  }
  if constexpr (Config::kBranch > 0) {
#pragma unroll
    for (int n = 0; n < kMergedElements; n += 4) {
      const float4 before = *reinterpret_cast<const float4*>(sum + n);
      o[n] = fmaf(factors.before, before.x, o[n]);
      o[n + 1] = fmaf(factors.before, before.y, o[n + 1]);
      o[n + 2] = fmaf(factors.before, before.z, o[n + 2]);
      o[n + 3] = fmaf(factors.before, before.w, o[n + 3]);
    }
  }
  if constexpr (is_last_branch<Config>()) {
    const TensorArg& target = args.predict.caller_o;
    Element* to = static_cast<Element*>(target.data) + row.b * target.stride_b +
                  row.h * target.stride_h + row.q * target.stride_n + row.column;
    *reinterpret_cast<uint4*>(to) =
        make_uint4(pack<Element>(o[0], o[1]), pack<Element>(o[2], o[3]), pack<Element>(o[4], o[5]),
                   pack<Element>(o[6], o[7]));
  } else {
#pragma unroll
    for (int n = 0; n < kMergedElements; n += 4)
      *reinterpret_cast<float4*>(sum + n) = make_float4(o[n], o[n + 1], o[n + 2], o[n + 3]);
  }
}

/// A block takes as many queries of a head as it has threads for.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void merge_branch(const Args& args) {
  constexpr int kRowThreads = head_dim_v<Config>() / kMergedElements;
  constexpr int kRows = Config::kThreads / kRowThreads;
  static_assert(head_dim_v<Config>() % kMergedElements == 0, "a row is whole threads");
  const AttendArgs& attend = args.attend;
  const int rows = merged_rows<Config, Hooks>(args);
  const int blocks = ceil_div(rows, kRows);
  const int head = block_index() / blocks;
  if (is_beyond<Config>(head, attend.n_h)) return;
  // The host knows how many tokens whole means have.
  if (queries_of_row<Config>() > 1 && head >= attend.n_b * attend.n_h) return;
  const int row = thread_index() / kRowThreads;
  const int n = (block_index() - head * blocks) * kRows + row;
  if (row >= kRows || n >= rows) return;
  const int b = head / attend.n_h;
  const int column = (thread_index() - row * kRowThreads) * kMergedElements;
  const int q = callers_token<Config>(args, n, rows);
  merge_elements<Config, Hooks>(
      args, {b, head - b * attend.n_h, n, q, column, static_cast<long long>(head) * rows + n});
}

}  // namespace lacuna
