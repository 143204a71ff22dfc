// Tokens in another order: copies of q, k and v before the other kernels, and of o and lse back.
// Both read rows of args.predict.order[n]; an index outside [0, n) reads or writes the nearest row.
// Of a batch of sequences each has its own part of `order`, from the row on where its queries
// begin.
#pragma once

#include "args/expr.cuh"
#include "args/predict_args.cuh"
#include "attend/head_dims.cuh"
#include "loader/stored_rows.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

/// Which rows of which head a block copies.
struct PermutedRows {
  int b, h, head, first, n;
  __device__ __forceinline__ PermutedRows(int heads, int tokens) : n(tokens) {
    const int blocks = ceil_div(tokens, kPermutedTokens);
    head = block_index() / blocks;
    first = (block_index() - head * blocks) * kPermutedTokens;
    b = head / heads;
    h = head - b * heads;
  }
};

/// Copies rows; `kGathers`: target[n] = source[order[n]], else target[order[n]] = source[n].
/// row_of(token, column): of the source, rows of kWidth elements.
template <class Config, int kWidth, bool kGathers, class RowOf>
__device__ __forceinline__ void copy_rows(const TensorArg& target, RowOf row_of, const int* order,
                                          const PermutedRows& rows) {
  using Layout = TokenLayout<kWidth, kPermutedTokens, Config::kThreads>;
  using Element = typename Config::Element;
  const int first_row = Layout::first_row();
#pragma unroll
  for (int pass = 0; pass < Layout::kPasses; ++pass) {
    const int row = first_row + pass * Layout::kRowsPerPass;
    const int token = rows.first + row;
    if (row >= kPermutedTokens || token >= rows.n) continue;
    const int other = clamp_index(order[token], rows.n);
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      const int column = Layout::column(step);
      Element* to = element_of<Element>(target, rows.b, rows.h, kGathers ? token : other, column);
      *reinterpret_cast<uint4*>(to) = row_of(kGathers ? other : token, column).chunk();
    }
  }
}

/// attend's q, k or v (Config::kTensor 0, 1, 2) [n] = the caller's [order[n]]. 64 tokens a block.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void permute_tokens(const Args& args) {
  constexpr bool kIsQuery = Config::kTensor == 0;
  constexpr int kWidth = Config::kTensor == 2 ? head_dim_v<Config>() : Config::kHeadDim;
  const int heads = kIsQuery ? args.attend.n_h : args.attend.n_h / args.attend.heads_per_kv;
  const PermutedRows rows(heads, kIsQuery ? args.attend.n_q : args.attend.n_k);
  if (is_beyond<Config>(rows.head, heads)) return;
  const TensorArg& target = kIsQuery               ? args.attend.q
                            : Config::kTensor == 1 ? args.attend.k
                                                   : args.attend.v;
  const TensorArg& source = kIsQuery               ? args.predict.caller_q
                            : Config::kTensor == 1 ? args.predict.caller_k
                                                   : args.predict.caller_v;
  const auto row_of = [&](int token, int column) {
    if constexpr (kIsQuery) {
      return query_row<Config>(source, rows.b, rows.h, token, column);
    } else {
      constexpr KvTensor kTensor = Config::kTensor == 1 ? KvTensor::kKeys : KvTensor::kValues;
      constexpr bool kInPages = batch_layout<Config>() == BatchLayout::kPages;
      return stored_row<Config, kTensor, kInPages>(args, source, rows.b, rows.h, token, column);
    }
  };
  copy_rows<Config, kWidth, true>(target, row_of, args.predict.order, rows);
}

/// The caller's o, and lse if wanted, [order[n]] = attend's [n]. 64 tokens a block.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void unpermute_results(const Args& args) {
  const PermutedRows rows(args.attend.n_h, args.attend.n_q);
  if (is_beyond<Config>(rows.head, args.attend.n_h)) return;
  const auto row_of = [&](int token, int column) {
    return query_row<Config>(args.attend.o, rows.b, rows.h, token, column);
  };
  copy_rows<Config, head_dim_v<Config>(), false>(args.predict.caller_o, row_of, args.predict.order,
                                                 rows);
  const LseArg& target = args.predict.caller_lse;
  if (!Config::kWritesLse || target.data == nullptr) return;
  const int row = thread_index();
  const int token = rows.first + row;
  if (row >= kPermutedTokens || token >= rows.n) return;
  const LseArg& source = args.attend.lse;
  const int other = clamp_index(args.predict.order[token], rows.n);
  target.data[rows.b * target.stride_b + rows.h * target.stride_h + other] =
      source.data[rows.b * source.stride_b + rows.h * source.stride_h + token];
}

}  // namespace lacuna
