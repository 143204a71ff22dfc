// `estimate` with the last queries of a head as rows, whose result serves all its query tiles
// (select_rows). There are few such rows, so blocks share the keys of a head, and kernels follow
// one another:
//
//   sums       predict.row_sums: log2 of each row's sum over a share of the keys (SumsOfShares)
//   estimate   predict.scores: the sums of all shares; then p and score of the share's tiles
//
// If `keep` reads ranks, order_last_rows.cuh sorts the tiles behind that.
#pragma once

#include "select/tokens/tokens.cuh"

namespace lacuna {

/// The keys that a block takes.
template <class Config>
struct KeyShare {
  static constexpr int kColumns = token_share_columns(Config::kTileK);
  int shares;        ///< of a head
  int head, number;  ///< among all heads, among the shares

  template <class Args>
  __device__ __forceinline__ explicit KeyShare(const Args& args)
      : shares(ceil_div(args.attend.n_k, kColumns)),
        head(block_index() / shares),
        number(block_index() - head * shares) {}

  /// The last queries of the head.
  template <class Args>
  __device__ __forceinline__ KeepRow row(const Args& args) const {
    const int b = head / args.attend.n_h;
    KeepRow row =
        keep_row_of<Config>(args, b, head - b * args.attend.n_h, args.predict.keep_q_tiles - 1);
    row.q0 = args.attend.n_q - smaller(Config::kLastRows, args.attend.n_q);
    return row;
  }
  template <class Block, class Args>
  __device__ __forceinline__ void begin(Block& block, const Args& args) const {
    block.begin(row(args), number * kColumns, smaller((number + 1) * kColumns, args.attend.n_k));
  }
};

/// Of a thread's row, one for each share of the keys: predict.row_sums [head][2][share][row].
template <class Config>
class SumsOfShares {
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;

 public:
  enum Kind { kOwn, kReference };

  template <class Args>
  __device__ __forceinline__ SumsOfShares(const Args& args, const KeyShare<Config>& share,
                                          Kind kind)
      : sums_(args.predict.row_sums +
              (static_cast<long long>(share.head) * 2 + kind) * share.shares * Config::kRows +
              thread_index()),
        share_(share) {}

  __device__ __forceinline__ void store(float log2_sum) const {
    if (thread_index() < Config::kRows) sums_[share_.number * Config::kRows] = log2_sum;
  }

  /// Over all shares: log2 of the sum, or of the largest; -inf of nothing, NaN if one is.
  __device__ __forceinline__ float merge() const {
    if (thread_index() >= Config::kRows) return -kInfinity;
    float largest = -kInfinity;
    bool is_number = true;
#pragma unroll 4
    for (int n = 0; n < share_.shares; ++n) {
      const float x = sums_[n * Config::kRows];
      largest = fmaxf(largest, x);
      is_number = is_number && x == x;
    }
    if (!is_number) return __int_as_float(0x7fffffff);
    if (kIsRowMax || largest == -kInfinity) return largest;
    float sum = 0.0f;
#pragma unroll 4
    for (int n = 0; n < share_.shares; ++n) sum += exp2_approx(sums_[n * Config::kRows] - largest);
    return largest + log2_approx(sum);
  }

 private:
  float* const sums_;
  const KeyShare<Config> share_;
};

/// body(block, share) for the keys of this block, if there are any.
template <class Config, class Hooks, class Args, class Body>
__device__ __forceinline__ void on_key_share(const Args& args, Body body) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  const KeyShare<Config> share(args);
  if (is_beyond<Config>(share.head, args.attend.n_h)) return;
  TokenBlock<Config, Hooks, Args> block(args, block_smem);
  share.begin(block, args);
  body(block, share);
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_last_sums(const Args& args) {
  using Sums = SumsOfShares<Config>;
  using Block = TokenBlock<Config, Hooks, Args>;
  on_key_share<Config, Hooks>(args, [&](Block& block, const KeyShare<Config>& share) {
    if constexpr (Block::kNeedsSums) Sums(args, share, Sums::kOwn).store(block.sum_own());
    if constexpr (Block::kNeedsReference)
      Sums(args, share, Sums::kReference).store(block.sum_reference());
  });
}

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_last_rows(const Args& args) {
  using Sums = SumsOfShares<Config>;
  using Block = TokenBlock<Config, Hooks, Args>;
  on_key_share<Config, Hooks>(args, [&](Block& block, const KeyShare<Config>& share) {
    float own = 0.0f, log2_sum = 0.0f;
    if constexpr (Block::kNeedsSums) own = log2_sum = Sums(args, share, Sums::kOwn).merge();
    if constexpr (Block::kNeedsReference) log2_sum = Sums(args, share, Sums::kReference).merge();
    if constexpr (Block::kReadsPrevious) log2_sum = block.previous_sum();
    block.weigh(own, log2_sum);
  });
}

}  // namespace lacuna
