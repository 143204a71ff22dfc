// The ops of a Program before attend, each a function from arrays to arrays, on `threads` threads
// (0: all). Semantics: ir/program.hpp. Estimate and Select: estimate.hpp, select.hpp.
#pragma once

#include <algorithm>
#include <span>

#include "compiler/expr/evaluate.hpp"
#include "runtime/cpu/ops/array.hpp"

namespace lacuna {

/// What the branches of a spec hand on, one to the next: MergeBranch. Contiguous.
struct BranchSums {
  float* o = nullptr;    ///< [n_b, n_h, n_q, d]
  float* lse = nullptr;  ///< [n_b, n_h, n_q]; null: branches have weights
};

}  // namespace lacuna

namespace lacuna::predict {

// What formulas are told, but for what they alone read.

/// The launch and a head of it.
inline void bind_head(const HostArgs& args, std::span<const ParamView> params, HeadIndex head,
                      Bindings& bindings) {
  bindings.parameters = params;
  bindings.set(Variable::kNQ, args.n_q);
  bindings.set(Variable::kNK, args.n_k);
  bindings.set(Variable::kNH, args.n_h);
  bindings.set(Variable::kB, args.first_b + static_cast<std::int32_t>(head.b));
  bindings.set(Variable::kH, static_cast<std::int32_t>(head.h));
}
/// Tile (i, j) of an op with tiles of tile_q x tile_k tokens: its first and last tokens.
template <class Op>
void bind_bounds(const Op& op, const HostArgs& args, int i, int j, Bindings& bindings) {
  bindings.set(Variable::kQ0, i * op.tile_q);
  bindings.set(Variable::kQ1, std::min((i + 1) * op.tile_q, args.n_q) - 1);
  bindings.set(Variable::kK0, j * op.tile_k);
  bindings.set(Variable::kK1, std::min((j + 1) * op.tile_k, args.n_k) - 1);
}

// permute.cpp. `order` is i32 [tokens]; numbers outside [0, tokens) are taken as the nearest
// inside.

/// result[n] = x[order[n]]; contiguous, of x's type.
Array permute(const Array& x, std::span<const std::int32_t> order, const Threads& threads);
/// to[order[n]] = x[n].
void unpermute(const Array& x, std::span<const std::int32_t> order, const Array& to,
               const Threads& threads);

// branches.cpp

/// Means of each `tokens` tokens, the last one of those that are left; contiguous, of x's type.
Array token_means(const Array& x, int tokens, const Threads& threads);

/// One branch's results, and where they go.
struct BranchResults {
  const Program& program;
  const HostArgs& caller;    ///< o and lse of the last branch
  const HostArgs& attended;  ///< o and lse of attend
  const BranchSums& sums;
};
void merge_branch(const MergeBranch& op, const BranchResults& results);

// statistics.cpp. A `mean` is f32 [batch, heads, d] or null.

/// The mean over all tokens, f32 [batch, heads, d]; what is not finite counts as 0.
Array token_mean(const Array& x, const Threads& threads);
/// (x - mean) . onto, f32 [batch, n_h, tokens]; x, mean and onto are of query heads or KV heads.
Array project(const Array& x, const Array* mean, const Array& onto, int n_h,
              const Threads& threads);

// tiles.cpp

/// f32 [batch, heads, tiles, d].
Array summarise(const Array& x, const Array* mean, int tile, const Threads& threads);
/// f32 [batch, heads, tiles, 2 d]: the smallest of each element, then the largest.
Array bound(const Array& x, int tile, const Threads& threads);
/// f32 [batch, heads, tiles].
Array similarity(const Array& x, const Array* mean, int tile, SimilarityForm form,
                 const Threads& threads);

// quantise.cpp

struct Quantised {
  Array values;  ///< i8 [batch, heads, tokens, d]; or e4m3
  Array scales;  ///< f32: of i8 [batch, heads, tokens], a group's scale at each of its tokens;
                 ///< of e4m3 [batch, heads, d]
};
Quantised quantise(const Array& x, const Array* mean, const Quantise& op, bool is_query,
                   const Threads& threads);
Quantised quantise_values(const Array& x, float range, const Threads& threads);

/// The number of a token's quantisation group within its head, and how many groups a tile has.
int group_of_token(QuantGroup group, bool is_query, int tile, int token);
int groups_of_tile(QuantGroup group, bool is_query, int tile);

// compact.cpp

struct Lists {
  Array indices;  ///< i32 [batch, heads, q_tiles, k_tiles]
  Array counts;   ///< i32 [batch, heads, q_tiles]
};
/// `bits`: u32 [batch, heads, keep_q_tiles, keep_words].
Lists compact(const Array& bits, const Compact& op, const HostArgs& args,
              std::span<const ParamView> params);
/// Rows of bits for tiles of `keep_q` queries -> for tiles of `tile_q`, of which those are
/// multiples.
Array spread_rows(const Array& bits, int keep_q, int tile_q, int n_q);

// visible_pairs.cpp. Where bounds of the mask say too little: Select::pairs, Estimate::pairs.

/// Does one of the queries see one of the keys? Both ends count. `bindings` know all that the mask
/// reads but q and k, which they are told.
bool has_visible_pair(const Expr& mask, int q0, int q1, int k0, int k1, Bindings& bindings);
/// Bits of the predictor's tiles that have a visible pair, u32 [batch or 1, heads or 1, q_tiles,
/// words]: 1 where the mask is the same for all.
Array visible_tiles(const Select& op, const HostArgs& args, std::span<const ParamView> params);
/// Is tile j of row i one of those?
bool is_visible(const Array& visible, HeadIndex head, int i, int j);

}  // namespace lacuna::predict
