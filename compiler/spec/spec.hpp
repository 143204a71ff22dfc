// VariantSpec: a sparse-attention variant as read from JSON. Plain values; every expression is
// parsed and typed. The field table (spec/table/fields.hpp) yields the reader, the JSON Schema and
// the reference docs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/expr/expr.hpp"

namespace lacuna {

enum class DType : std::uint8_t { kBF16, kF16, kF32 };

/// A field that may be left to the compiler ("auto" or absent: no values), fixed (one value), or a
/// search space for the tuner (several; the first legal one is used until tuned).
template <class T>
struct Choice {
  std::vector<T> values;
  bool is_auto() const { return values.empty(); }
  bool admits(const T& value) const {
    return is_auto() || std::ranges::find(values, value) != values.end();
  }
  bool operator==(const Choice&) const = default;
};

/// "warp", "tile"; "warpgroup" is what becomes of "warp" where 64 rows are one instruction.
enum class GateScope : std::uint8_t { kWarp, kTile, kWarpgroup };
enum class TileOrder : std::uint8_t { kAscending, kDescending };
enum class QueryPlace : std::uint8_t { kRegisters, kSharedMemory };
/// "cp_async", "gather"; "tma" is the compiler's choice alone: it comes with the wgmma family.
enum class Loader : std::uint8_t { kCpAsync, kGather, kTma };

/// What of a tile's tokens an estimate compares: its rows, of queries, and columns, of keys.
enum class SummaryKind : std::uint8_t {
  kMean,      ///< "mean": one vector, the mean over the tile's real tokens, f32
  kCellMean,  ///< "mean(8)": one vector for each cell of 8 tokens, its mean in the element type;
              ///< rows and columns have cells of their own
  kTokens,    ///< "tokens": the tile's real tokens
  kAntidiagonal,  ///< "antidiagonal(8)": cells of 8 tokens; dot(r, c) = sum over s of q[r*8 + 7-s]
                  ///< . k[c*8 + s], divided by 8: that of the antidiagonal of their 8 x 8 logits
                  ///< (XAttention); missing tokens of the last cell count as 0
  kLast,          ///< "last(64)": the last min(64, n_q) query tokens, for every tile (MInference)
  kMinMax,        ///< "min_max": bounds of the tile's keys, the smallest and the largest of each
                  ///< element; dot(r, c) = sum of max(q[d] * smallest[d], q[d] * largest[d]), which
                  ///< bounds the products of all of them (Quest)
  kStride,        ///< "stride(16)": the tile's query tokens whose number is a multiple of 16
};
/// Whose tokens a summary can be of.
enum class SummarySide : std::uint8_t { kQueries, kKeys };
struct Summary {
  SummaryKind kind = SummaryKind::kMean;
  int count = 1;  ///< of kCellMean, kAntidiagonal, kLast and kStride
  bool operator==(const Summary&) const = default;
};

/// Are its vectors those of cells of tokens?
constexpr bool has_cells(const Summary& summary) {
  return summary.kind == SummaryKind::kCellMean || summary.kind == SummaryKind::kAntidiagonal;
}

enum class Reduce : std::uint8_t { kMax, kSum };                  // "max", "sum"
enum class ValuesOf : std::uint8_t { kOwn, kKeys };               // "own", "k"
enum class LseBase : std::uint8_t { kE, k2 };                     // "e", "2"
enum class Weights : std::uint8_t { kSoftmax, kSigmoid, kNone };  // "softmax", "sigmoid", "none"
/// Are weights divided by their sum over the row? Only then is there a log-sum-exp.
constexpr bool has_denominator(Weights weights) { return weights == Weights::kSoftmax; }
enum class Normalise : std::uint8_t { kNone, kSoftmax, kLse, kPreviousLse, kRowMax };
/// Are weights relative to a log-sum-exp of exact logits, which every query token has?
constexpr bool has_exact_lse(Normalise normalise) {
  return normalise == Normalise::kLse || normalise == Normalise::kPreviousLse;
}
/// Are they relative to the row's own logits, so that a constant added to all of them is not seen?
constexpr bool is_relative_to_row(Normalise normalise) {
  return normalise == Normalise::kSoftmax || normalise == Normalise::kRowMax;
}
enum class QuantGroup : std::uint8_t { kBlock, kWarp, kThread };
enum class SimilarityForm : std::uint8_t { kCosine, kGramMax };  // "cosine", "gram_max"
enum class TokenOrder : std::uint8_t {
  kNone,
  kExternal,
  kHilbert,
  kRowMajor,
  kColumnMajor,
  kTimeMajor
};

/// Which procedure of `lacuna calibrate` finds a parameter (tools/calibrate/search.hpp).
enum class Calibrate : std::uint8_t { kNone, kBisect, kGrid, kHalve, kKeptTiles };

struct AttentionSpec {
  Expr mask;                              ///< Site::kMask; empty: everything is visible
  Expr score;                             ///< Site::kScore; empty: s
  Expr sink;                              ///< Site::kSink; empty: none
  std::optional<float> scale;             ///< softmax scale; absent: 1 / sqrt(head_dim)
  Choice<int> head_dim;                   ///< auto: the caller decides
  Choice<int> head_dim_v;                 ///< of V and O; auto: the caller decides
  Choice<DType> dtype;                    ///< auto: the caller decides
  ValuesOf v = ValuesOf::kOwn;            ///< a tensor of its own, or the first elements of K
  Weights normalise = Weights::kSoftmax;  ///< what becomes of logits
  bool lse = true;  ///< the log-sum-exp output may be asked for; only a softmax has one
  LseBase lse_base = LseBase::kE;
  bool operator==(const AttentionSpec&) const = default;
};

inline constexpr std::size_t kMaxParams = 32;  ///< of a spec; a launch has room for as many
inline constexpr std::size_t kMaxLets = 64;    ///< names of `let`

struct ParamSpec {
  ParamSymbol symbol;
  double minimum = -std::numeric_limits<double>::infinity();  ///< inclusive; may be infinite
  double maximum = std::numeric_limits<double>::infinity();
  double default_value = 0;  ///< stands for every element when the caller passes nothing
  bool has_default = false;  ///< false: the caller must pass it
  std::string doc, unit;
  Calibrate calibrate = Calibrate::kNone;
  bool operator==(const ParamSpec&) const = default;
};

struct GateSpec {
  GateScope scope = GateScope::kTile;
  Expr skip;    ///< Site::kGate
  Expr exempt;  ///< Site::kGate; empty: nothing is exempt (but the first visited tile always is)
  bool skips_v_load = false, skips_exp = false, skips_pv = false;
  bool operator==(const GateSpec&) const = default;
};

/// predictor.estimate.index: what is compared are not q and k, but vectors of their own:
///   logit(q, k) = sum over index heads of weight(h, q) * max(0, q(h, q) . k(k))
inline constexpr int kMostIndexHeads = 128;
inline constexpr int kLeastIndexDim = 32, kMostIndexDim = 256, kIndexDimStep = 16;
struct IndexSpec {
  int heads = 1, dim = 64;  ///< index heads; elements of a vector
  Expr q, k, weight;        ///< Site::kIndexQ, kIndexK, kIndexWeight
  bool operator==(const IndexSpec&) const = default;
};

/// predictor.estimate: a number for each tile, from which predictor.keep decides. Semantics:
/// ir/program.hpp, Estimate.
struct EstimateSpec {
  Expr from;  ///< Site::kFrom; the scores themselves; empty: q is compared with k
  std::optional<IndexSpec> index;  ///< absent: q is compared with k
  Summary q, k;
  int bits = 0;  ///< of the compared vectors: 32 (mean), 16, 8, 4; 0: 32 with a mean, else 16
  QuantGroup group = QuantGroup::kThread;  ///< of 8 and 4 bits
  Reduce reduce = Reduce::kMax;
  Normalise normalise = Normalise::kSoftmax;
  float temperature = 1;  ///< factor of the logits that are normalised
  std::string dims;       ///< bands of the head dimension that are compared (bands.hpp); "": all
  Expr reference;  ///< Site::kReference; of kLse: whose exact logits normalise; empty: all visible
  Expr exclude;    ///< Site::kExclude; empty: no tile is excluded
  bool operator==(const EstimateSpec&) const = default;
};

inline constexpr std::size_t kMostSteps = 2;  ///< of a predictor

struct PredictorSpec {
  int tile_q = 128, tile_k = 64;  ///< tokens of the tiles that are kept; k = 1, 8, 16: columns
  bool smooth_q = false, smooth_k = false;
  SimilarityForm similarity = SimilarityForm::kCosine;
  std::optional<EstimateSpec> estimate;
  Expr keep;      ///< Site::kKeep
  int reuse = 1;  ///< launches that share one decision through a selection of the caller
  bool shared_heads = false;  ///< "heads": "shared": query heads of a KV head keep the union
  /// The steps before this one, in order; their tiles are its own. It looks `within` the tiles that
  /// the last of them kept, or keeps those as well (`joins`).
  std::vector<PredictorSpec> before;
  bool within = false, joins = false;
  /// `true` beside `smooth`: every tile is kept, and attend's integers are smoothed.
  bool only_smooths() const;
  bool operator==(const PredictorSpec&) const = default;
};

struct QuantiseSpec {
  int qk_bits = 16;  ///< 16, 8
  QuantGroup qk_group = QuantGroup::kBlock;
  int v_bits = 16;      ///< 16, 8 (e4m3, one scale for each channel)
  float v_range = 448;  ///< what a channel's largest value becomes
  bool operator==(const QuantiseSpec&) const = default;
};

/// Tokens are computed in another order, which makes neighbours in space neighbours in memory.
struct PermuteSpec {
  TokenOrder order = TokenOrder::kNone;
  int t = 0, h = 0, w = 0;  ///< of the generated orders: tokens lie [t][h][w] in memory
  /// Tokens of a cube, cut off at the borders: cubes follow each other in the order, and so do the
  /// tokens of each.
  int cube_t = 1, cube_h = 1, cube_w = 1;
  bool operator==(const PermuteSpec&) const = default;
};

struct TileSpec {
  Choice<int> q, k;    ///< queries and keys of a tile
  Choice<int> stages;  ///< K/V tiles in flight
  Choice<int> warps;
  Choice<TileOrder> order;
  Choice<int> split_kv;        ///< blocks that share the tiles of a row
  Choice<QueryPlace> queries;  ///< where products with keys take them from
  bool operator==(const TileSpec&) const = default;
};

inline constexpr std::size_t kMostBranches = 4;  ///< of a spec
inline constexpr int kMostMeanTokens = 1024;     ///< of BranchSpec::means and query_means

/// Parameters that formulas of a branch over means read in place of n_k and n_q, which count means
/// there: the numbers of key tokens and of query tokens.
inline constexpr std::string_view kTokensParam = "n_tokens";
inline constexpr std::string_view kQueriesParam = "n_queries";
/// What formulas of a spec with permute read the order as.
inline constexpr std::array<std::string_view, 2> kOrderParamNames = {"query_order", "key_order"};

/// What one of several attends of a spec has besides the fields of a spec of its own. Outputs of
/// the branches are added, each times its weight; without weights they are merged by their
/// log-sum-exps, as if one softmax had run over the keys of all branches.
struct BranchSpec {
  std::string name;
  int means = 1;  ///< keys of a mean; from 2 on means are attended to in the place of tokens
  int query_means =
      1;             ///< queries of a mean; from 2 on a mean attends, and its tokens get its output
  std::string dims;  ///< the band of the head dimension that is compared (bands.hpp); "": all
  Expr weight;       ///< Site::kWeight; empty: 1, and branches are merged by their log-sum-exps
  int index = 0, count = 0;  ///< which of how many branches; count 0: of a spec without
  bool operator==(const BranchSpec&) const = default;
};

struct VariantSpec {
  int version = 1;
  std::string name;
  std::string doc;     ///< one paragraph
  std::string source;  ///< the paper or code it comes from
  AttentionSpec attention;
  std::vector<ParamSpec> params;  ///< in file order
  std::vector<LetSymbol> let;     ///< in file order; of a branch: the spec's
  PermuteSpec permute;
  std::optional<PredictorSpec> predictor;
  std::optional<GateSpec> gate;
  QuantiseSpec quantise;
  bool external_mask = false;  ///< "mask": "external": the caller passes block lists
  TileSpec tile;
  Choice<Loader> loader;
  std::vector<VariantSpec> branches;  ///< each a spec of its own; empty: this one's is the attend
  BranchSpec branch;                  ///< of one of `branches`

  std::vector<ParamSymbol> param_symbols() const;
  /// The steps of the predictor, the last one last; none without a predictor.
  std::vector<const PredictorSpec*> steps() const;
  bool operator==(const VariantSpec&) const = default;
};

/// A VariantSpec with the text it came from and the place of every value ("/tile/q" -> span).
struct SpecDocument {
  VariantSpec spec;
  SourceText source;
  std::map<std::string, Span> spans;
};

/// Reads and checks a spec; reports every error of the text. The document is only meaningful if no
/// error was added.
SpecDocument read_spec(SourceText source, Diagnostics& diagnostics);

/// The specs that are computed one after the other: those of the branches, with their places in the
/// text, or the document itself where it has none.
std::vector<SpecDocument> branch_documents(const SpecDocument& document);

/// Canonical JSON: read_spec(print_spec(s)) has an equal VariantSpec. A formula that reads names of
/// `let` is printed as it was written.
std::string print_spec(const VariantSpec& spec);

/// The spec without names for parts of its formulas: equal for all ways to name them.
VariantSpec without_let(VariantSpec spec);

/// JSON Schema, draft-07, of the spec language; what specs/schema.json holds.
std::string spec_json_schema();

/// Reference of all fields, and of what their expressions may say, in Markdown.
std::string spec_reference();

std::string_view name_of(DType);
std::string_view name_of(GateScope);
std::string_view name_of(TileOrder);
std::string_view name_of(QueryPlace);
std::string_view name_of(Loader);
std::string_view name_of(Reduce);
std::string_view name_of(ValuesOf);
std::string_view name_of(LseBase);
std::string_view name_of(Weights);
std::string_view name_of(Normalise);
std::string_view name_of(QuantGroup);
std::string_view name_of(SimilarityForm);
std::string_view name_of(TokenOrder);
std::string_view name_of(Calibrate);
std::string name_of(const Summary&);  ///< "mean", "mean(8)", "antidiagonal(8)"
int size_bytes(DType);

}  // namespace lacuna
