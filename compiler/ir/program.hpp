// Program: *what* is computed, as typed ops over symbolic shapes. Spec -> Program -> passes.
//
// Each op is a struct of plain fields with one table of them (ir/fields.hpp), from which printer,
// parser, hash and equality follow. Both backends start here: passes + emit make CUDA of it, the
// CPU backend compiles it through LLVM, the interpreter walks it.
// parse_program(print_program(p)) == p.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/expr/bounds/interval.hpp"
#include "compiler/expr/expr.hpp"
#include "compiler/ir/build_options.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

enum class Element : std::uint8_t { kBF16, kF16, kF32, kI32, kI8, kE4M3, kU32 };
enum class Dim : std::uint8_t {
  kBatch,
  kHeads,
  kHeadsKv,
  kNQ,
  kNK,
  kHeadDim,
  kQTiles,
  kKTiles,
  kCapacity,
  kKeepQTiles,  ///< query tiles of the predictor
  kKeepKTiles,  ///< key tiles (or columns) of the predictor
  kKeepWords,   ///< ceil(kKeepKTiles / 32): 32 tiles in each u32, lowest bit first
  kQCells,      ///< cells of query tokens
  kKCells,      ///< ... and of key tokens
  kQGroups,     ///< quantisation groups along the query tokens
  kKGroups,     ///< ... and the key tokens
  kBounds,      ///< 2 * head_dim: the smallest of each element, then the largest
  kNTokens,     ///< key tokens, where kNK counts means of them
  kNQueries,    ///< query tokens, where kNQ counts means of them
};

struct ValueType {
  Element element = Element::kF32;
  std::vector<Dim> shape;
  bool operator==(const ValueType&) const = default;
};

/// A tensor the caller passes: "q", "k", "v", "list_indices", "list_counts", "order",
/// "previous_lse". Of q and k `dims` may name a band (bands.hpp): the elements of the caller's rows
/// that the program has; "" all. The caller's rows are whole; the runtime passes where the band
/// begins.
struct Input {
  std::string name;
  std::string dims;
};
bool operator==(const Input& a, const Input& b);

/// Gate of an attend op. Statistics are taken over the rows in scope (kWarp: 16 rows, kWarpgroup:
/// 64, kTile: all rows of the tile) that exist (q < n_q), in natural units after mask and score:
///   tile_max = max over rows of the row maximum of this tile
///   gap      = max over rows of (row maximum of this tile - running row maximum before this tile)
/// A row without a visible key in the tile does not take part; no row at all: both are -inf. A row
/// whose running maximum is still -inf has gap +inf. Skip iff `skip and not exempt`; the first
/// visited tile of a work tile is never skipped. skips_exp: maximum and denominator stay as they
/// were; only skips_pv: both are updated, the product with V is left out.
struct Gate {
  GateScope scope = GateScope::kTile;
  Expr skip, exempt;
  bool skips_v_load = false, skips_exp = false, skips_pv = false;
};
bool operator==(const Gate& a, const Gate& b);

/// Does a decision depend on it? On the gap: on the running maximum, and so on the tiles before.
bool reads(const Gate& gate, Variable variable);

/// Tokens in another order: result[n] = x[order[n]] along the tokens; q and k of formulas are n.
struct Permute {
  int x = -1, order = -1;
};
bool operator==(const Permute& a, const Permute& b);

/// Means of `tokens` neighbouring tokens of k and v, or of q; the last one is of those that are
/// left; summed in f32, in the element type: [batch, heads(_kv), n_k or n_q, d] of [batch,
/// heads(_kv), n_tokens or n_queries, d]. In the whole program n_k (n_q) is the number of means,
/// and the parameter kTokensParam (kQueriesParam) that of the tokens. 1: numbers of e4m3 codes.
struct Means {
  int x = -1;
  int tokens = 0;
};
bool operator==(const Means& a, const Means& b);

/// The mean over all tokens, per batch entry and head, in f32: [batch, heads(_kv), d]. What
/// smoothing subtracts: ops that read x smoothed take it as `mean`. What is not finite counts as 0:
/// any mean will do, and a NaN or an infinity must not reach other tokens.
struct Smooth {
  int x = -1;
};
bool operator==(const Smooth& a, const Smooth& b);

/// The mean over the real tokens of each tile of (x - mean), f32: [batch, heads(_kv), tiles, d].
/// What is not finite counts as 0: the tile's other tokens still have a summary. `rounded`: of
/// cells, smaller than the predictor's tiles: [batch, heads(_kv), cells, d] in x's element type, to
/// nearest even. `bounds` (of keys): the smallest and the largest of each element.
struct Summarise {
  int x = -1, mean = -1;
  int tile = 0;
  bool rounded = false, bounds = false;
};
bool operator==(const Summarise& a, const Summarise& b);

/// Self-similarity of each tile of (x - mean), f32: [batch, heads(_kv), tiles]. Zero tokens,
/// and those with a NaN or an infinity, are left out; a tile without any other token has none,
/// stored as -inf: below every threshold, so that `similar_k < theta` keeps it. Forms: kCosine:
/// squared length of the mean of the unit rows, in [0, 1]. kGramMax: mean of the Gram matrix
/// divided by its largest magnitude.
struct Similarity {
  int x = -1, mean = -1;
  int tile = 0;
  SimilarityForm form = SimilarityForm::kCosine;
};
bool operator==(const Similarity& a, const Similarity& b);

/// (x - mean) in symmetric integers of `bits` (8: +-127, 4: +-7), stored as i8, round half away
/// from zero, value = integer * scale, scale = largest finite magnitude of the group / 127 (or 7);
/// an all-zero group has scale 1. NaN becomes 0, an infinity any integer. Results: values [batch,
/// heads(_kv), n, d] i8, scales [.., groups] f32. Groups of a tile of `tile` tokens, counted along
/// the tokens:
///   kBlock   1: the whole tile
///   kWarp    queries: tile / 16, rows of one mma; keys: 1
///   kThread  queries: tile / 2: in each 16 rows, group g (0..7) is rows g and g + 8;
///            keys: tile / 8: in each 32 keys, group t (0..3) is the 8 keys whose index mod 8 is 2t
///            or 2t + 1
/// Group number of token n: tile-major, then the 16 rows (32 keys), then g (t).
struct Quantise {
  int x = -1, mean = -1;
  int bits = 8;
  QuantGroup group = QuantGroup::kBlock;
  int tile = 0;
};
bool operator==(const Quantise& a, const Quantise& b);

/// V in e4m3, one scale for each channel over all tokens: value = code * scale, scale = largest
/// finite magnitude / range (1 where that is 0), round to nearest even, saturating. What is not
/// finite becomes NaN. Results: codes [batch, heads_kv, n_k, d] e4m3, scales [batch, heads_kv, d]
/// f32.
struct QuantiseValues {
  int x = -1;
  float range = 448;
};
bool operator==(const QuantiseValues& a, const QuantiseValues& b);

/// (x - mean) . onto for each token, f32: [batch, heads, n]. What smoothing took away from the
/// logits:
///   q . k = (q - q_mean) . (k - k_mean) + q . k_mean + q_mean . (k - k_mean)
/// The second term is project(x=q, onto=k_mean), the third project(x=k, mean=k_mean, onto=q_mean).
struct Project {
  int x = -1, mean = -1, onto = -1;
};
bool operator==(const Project& a, const Project& b);

/// A number for each tile (i, j) of tile_q x tile_k tokens (tile_k = 1, 8, 16: columns), f32:
/// `score` and `p` of predictor.keep. Rows r of query tile i and columns c of key tile j, and
/// dot(r, c) of two of them: SummaryKind (spec/spec.hpp).
/// With an index what is compared are not q and k: rows are tokens, and
///   logit(r, c) = temperature * sum over g < index_heads of
///                 index_weight(g, r) * max(0, sum over d of index_q(g, r, d) * index_k(c, d))
/// whose vectors are rounded to the program's dtype; without index_weight weights are 1.
/// With `from` nothing is compared: a tile has one pair, its logit is temperature * from(i, j). A
/// column is visible to a row if attention.mask leaves some pair of their tokens visible. For
/// single tokens the mask says that. For summaries and cells interval analysis does; where it
/// cannot tell, they count as visible, or with `pairs` the mask is evaluated for each of their
/// pairs.
///   logit(r, c) = temperature * scale * dot(r, c)         over visible, not excluded columns only
/// 8 and 4 bits: dot = integer dot * q_scale * k_scale + row_bias[r] + column_bias[c].
///   weight(r, c) = logit                                  kNone
///                  exp(logit - lse_r)                     else; lse_r = log sum of exp(logit) over
///     kSoftmax: the row's visible, not excluded columns;
///     kLse: the exact logits (exact_q, exact_k) of the row's visible keys where `reference` holds;
///     kPreviousLse: given, [batch, heads, n_q];
///     kRowMax: instead of a sum the row's largest logit, whose weight is 1.
///   A row whose lse is -inf has no weights at all.
///   score(i, j) = the largest (kMax) logit of the tile, or its sum (kSum)
///   p(i, j) = kMax: the largest weight of the tile; kSum: the sum of weights over the tile's
///   columns,
///             averaged over the rows that have a visible column: a work tile sums to 1
/// Tiles without a weight: score = -inf, p = 0 (kNone: p = -inf). `exclude` (of tiles,
/// Site::kExclude) takes a tile out of the normalisation; its score and p are those of a tile
/// without weights. So does `within` with the tiles that a step before did not keep.
struct Estimate {
  int q = -1, k = -1;  ///< tensors, summaries or quantised values; with from or an index none
  int q_scale = -1, k_scale = -1;       ///< of quantised values
  int row_bias = -1, column_bias = -1;  ///< [batch, heads, n_q], [batch, heads, n_k]
  int exact_q = -1, exact_k = -1;       ///< kLse
  int previous_lse = -1;                ///< kPreviousLse
  int similar_q = -1, similar_k = -1;   ///< read by `exclude`
  int within = -1;                      ///< bits of a select
  Summary rows, columns;
  int bits = 32;
  QuantGroup group = QuantGroup::kThread;
  Reduce reduce = Reduce::kMax;
  Normalise normalise = Normalise::kSoftmax;
  Expr mask;                  ///< attention.mask
  TileClassifier classifier;  ///< of mask; derived
  Expr reference;
  TileClassifier reference_classifier;  ///< of reference; derived
  Expr exclude, from;
  Expr index_q, index_k, index_weight;
  int index_heads = 0, index_dim = 0;  ///< of an index; else 0
  float scale = 0, temperature = 1;
  std::string dims;  ///< bands of the head dimension that have a part in dot; "" all (bands.hpp)
  int tile_q = 0, tile_k = 0;
  bool pairs = false;  ///< what the classifier leaves open about a column, its pairs decide
  bool is_given() const { return !from.empty(); }
  bool is_indexed() const { return index_heads > 0; }
};
bool operator==(const Estimate& a, const Estimate& b);

/// Bits of the tiles to compute: those that the mask leaves visible and for which `keep` holds. u32
/// [batch, heads, keep_q_tiles, keep_words]; bits past the last tile are 0.
///   rank(i, j): tiles of row i that are visible and have larger p, ties: lower index first
///   mass_before(i, j): their p, summed in f32 (in order of rank or of index: within rounding)
///   visible(i): tiles of row i that the mask leaves visible; p_max(i): the largest p of these
/// With `within`, the bits of a step before, only its tiles count as visible; what `joins` keeps is
/// kept, too.
struct Select {
  int p = -1, score = -1;  ///< the two results of an estimate; -1: keep reads neither
  int similar_q = -1, similar_k = -1;
  int within = -1, joins = -1;
  Expr keep, mask;
  TileClassifier classifier;  ///< of mask; derived
  int tile_q = 0, tile_k = 0;
  bool shared_heads = false;  ///< each head gets the union over its KV head's query heads
  bool pairs = false;         ///< what the classifier leaves open about a tile, its pairs decide
};
bool operator==(const Select& a, const Select& b);

/// Bits -> ascending lists of attend's tiles, bit 31 set where a tile needs the mask. A tile of the
/// bits (keep_q x keep_k tokens) is a whole number of attend's tiles (tile_q x tile_k); of those
/// only visible ones are listed. Results: list_indices, list_counts as the inputs of these names.
struct Compact {
  int bits = -1;
  Expr mask;
  TileClassifier classifier;  ///< of mask; derived
  int keep_q = 0, keep_k = 0, tile_q = 0, tile_k = 0;
};
bool operator==(const Compact& a, const Compact& b);

/// The inverse of Permute on results: result[order[n]] = x[n].
struct Unpermute {
  int x = -1, order = -1;
};
bool operator==(const Unpermute& a, const Unpermute& b);

/// Results of attend as those of branch `index` of `count`, whose programs run one after the other:
/// each adds its o to a sum, f32 [batch, heads, n_q, d], which the first one makes and the last one
/// hands to the caller. Results: the sum, in the last branch o; and without `weight` the lse of all
/// branches so far.
///   weight:  sum = sum of weight(q, h, b) * o[q // queries]; q is the caller's where permuted
///   without: sum = sum of exp(lse_branch - lse) * o, lse = log sum of exp(lse_branch): as if one
///            softmax had run over the keys of all branches; 0 where every lse is -inf
struct MergeBranch {
  int o = -1, lse = -1, order = -1;  ///< lse: without weight; order: sums keep it, the last o none
  int index = 0, count = 0, queries = 1;
  Expr weight;
  LseBase lse_base = LseBase::kE;  ///< of the last result
  bool is_first() const { return index == 0; }
  bool is_last() const { return index == count - 1; }
};
bool operator==(const MergeBranch& a, const MergeBranch& b);

/// Online-softmax attention over the visited tiles of each work tile.
/// Visited: tiles of `list_indices` if given, else those the classifier does not find empty; with
/// `pairs` those with a visible pair. Results: o, and lse if wanted. Empty row: o = 0, lse = -inf.
/// kSigmoid: weights are 1 / (1 + exp(-logit)), kNone: the logits. O is their sum with v; no lse.
///
/// A key that a row does not see (`mask` is false, or its tile is not visited) has no part in the
/// row, whatever k and v hold there. On a GPU v has to be finite in all keys of a visited tile:
/// there a weight of 0 is multiplied with it.
///
/// With `columns` (the gather loader) the kept columns of a row, keep_k keys each, are gathered
/// into tiles of tile_k keys in ascending order; every key is masked by its own index, K and V
/// share one order, and reports are in columns: k_tiles = ceil(n_k / keep_k). With q_scale: q and k
/// are quantised values, the logit is
///   scale * (integer dot * q_scale * k_scale + row_bias[q] + column_bias[k]).
/// With v_scale: v is e4m3 codes, weights are rounded to e4m3 of 448 * weight before the product,
/// whose sum of one tile is added to the f32 output; the denominator sums unrounded weights.
struct Attend {
  int q = -1, k = -1, v = -1;  ///< value ids
  int columns = -1;            ///< bits of a select; -1: no gathering
  int q_scale = -1, k_scale = -1, v_scale = -1;
  int row_bias = -1, column_bias = -1;
  int qk_tile_q = 0, qk_tile_k = 0;  ///< tiles of the quantisation groups
  QuantGroup qk_group = QuantGroup::kBlock;
  int keep_k = 0;                           ///< keys of a column of `columns`
  int list_indices = -1, list_counts = -1;  ///< value ids; -1: no lists
  Expr mask, score;                         ///< empty: all visible; s
  TileClassifier classifier;                ///< of `mask`; derived: neither printed nor compared
  std::optional<Gate> gate;
  float scale = 0;             ///< softmax scale
  int tile_q = 0, tile_k = 0;  ///< 0 until choose_tiles
  TileOrder order = TileOrder::kAscending;
  Expr sink;  ///< a logit of each row in the denominator and the lse alone; empty: none
  Weights normalise = Weights::kSoftmax;
  bool lse = true;
  LseBase lse_base = LseBase::kE;
  bool v_of_k = false;  ///< the input v is the first elements of the input k, in the same memory
  bool pairs = false;   ///< what the classifier leaves open about a tile, its pairs decide
};
bool operator==(const Attend& a, const Attend& b);

using Op = std::variant<Input, Permute, Smooth, Summarise, Similarity, Quantise, QuantiseValues,
                        Project, Estimate, Select, Compact, Attend, Unpermute, Means, MergeBranch>;

struct Value {
  std::string name;  ///< without the %
  ValueType type;
  bool operator==(const Value&) const = default;
};

/// One op and the ids of the values it defines (indices into Program::values).
struct Node {
  std::vector<int> results;
  Op op;
  bool operator==(const Node&) const = default;
};

struct Program {
  std::string name;
  int head_dim = 0;
  DType dtype = DType::kBF16;
  BatchLayout batch = BatchLayout::kUniform;
  std::vector<ParamSpec> params;
  std::vector<Value> values;
  std::vector<Node> nodes;
  int head_dim_v = 0;  ///< of v and o; 0: head_dim. Read it by value_dim
  KvFormat kv = KvFormat::kSame;
};

/// Same meaning. Words for readers (ParamSpec::doc, unit) and the derived classifier do not count.
bool operator==(const Program& a, const Program& b);

/// Equal programs have equal hashes, in every process.
std::uint64_t hash_program(const Program& program);

/// VariantSpec -> Program; adds diagnostics if the spec does not allow the head dim or dtype.
Program build_program(const SpecDocument& document, const BuildOptions& options,
                      Diagnostics& diagnostics);

/// Canonical text: parameters in declaration order, then one op per line.
std::string print_program(const Program& program);

/// Reads that text (and `#` comments) and derives classifiers. One error for each bad line.
Program parse_program(const SourceText& source, Diagnostics& diagnostics);

/// Computes the classifiers of an op's `mask` and `reference`; ops without them stay as they are.
void derive_classifiers(Op& op);

/// Checks the verifier's rules, whose words are the diagnostic.
void verify_program(const Program& program, Diagnostics& diagnostics);

/// The words of all those rules.
std::vector<std::string_view> verifier_rules();

/// The one attend op of a verified program.
const Attend& attend_of(const Program& program);
Attend& attend_of(Program& program);

/// The op of kind T, nullptr if the program has none (the first, if it has several).
template <class T>
const T* find_op(const Program& program) {
  for (const Node& node : program.nodes) {
    if (const T* op = std::get_if<T>(&node.op)) return op;
  }
  return nullptr;
}
template <class T>
T* find_op(Program& program) {
  return const_cast<T*>(find_op<T>(std::as_const(program)));
}

/// A step of the predictor: a select and the estimate it reads, if it reads one.
struct PredictStep {
  const Select* select = nullptr;
  const Estimate* estimate = nullptr;
};

/// The estimate that a select reads; nullptr if it reads none.
const Estimate* estimate_of(const Program& program, const Select& select);
/// In order; attend follows the bits of the last one, which has null members if there is none.
std::vector<PredictStep> predict_steps(const Program& program);
PredictStep last_step(const Program& program);

const Node& definition_of(const Program& program, int value);
/// Of keys, of queries; nullptr: tokens as they are.
const Means* key_means(const Program& program);
/// Are attend's keys and values means, or copies in another order, and not the rows of the caller?
bool makes_keys(const Program& program);
const Means* query_means(const Program& program);

}  // namespace lacuna
