#include "compiler/expr/expr_tables.hpp"

#include <algorithm>
#include <array>

namespace lacuna {
namespace {

using enum ExprType;

constexpr std::array kVariables = std::to_array<VariableInfo>({
    {Variable::kQ, "q", kI32, "query token"},
    {Variable::kK, "k", kI32, "key token"},
    {Variable::kNQ, "n_q", kI32, "number of query tokens"},
    {Variable::kNK, "n_k", kI32, "number of key tokens"},
    {Variable::kH, "h", kI32, "query head"},
    {Variable::kB, "b", kI32, "batch entry"},
    {Variable::kS, "s", kF32, "logit after the softmax scale, natural units"},
    {Variable::kI, "i", kI32, "query tile"},
    {Variable::kJ, "j", kI32, "key tile"},
    {Variable::kNI, "n_i", kI32, "number of query tiles"},
    {Variable::kNJ, "n_j", kI32, "number of key tiles"},
    {Variable::kQ0, "q0", kI32, "first query token of the tile"},
    {Variable::kQ1, "q1", kI32, "last query token of the tile"},
    {Variable::kK0, "k0", kI32, "first key token of the tile"},
    {Variable::kK1, "k1", kI32, "last key token of the tile"},
    {Variable::kScore, "score", kF32, "estimated score of the tile"},
    {Variable::kP, "p", kF32, "normalised estimate of the tile"},
    {Variable::kRank, "rank", kI32,
     "number of tiles of the row with larger p; of equal ones the first goes before"},
    {Variable::kMassBefore, "mass_before", kF32, "sum of p over those tiles"},
    {Variable::kSimilarQ, "similar_q", kF32, "self-similarity of the query tile"},
    {Variable::kSimilarK, "similar_k", kF32, "self-similarity of the key tile"},
    {Variable::kVisible, "visible", kI32, "tiles of the row that the mask leaves visible"},
    {Variable::kPMax, "p_max", kF32, "largest p of the row's visible tiles"},
    {Variable::kTileMax, "tile_max", kF32, "largest logit of the rows in scope in this tile"},
    {Variable::kGap, "gap", kF32,
     "largest difference, over the rows in scope, of this tile's row maximum to the running one"},
    {Variable::kNH, "n_h", kI32, "number of query heads"},
    {Variable::kNB, "n_b", kI32, "number of batch entries"},
    {Variable::kNHKv, "n_h_kv", kI32, "number of key-value heads"},
    {Variable::kNSequences, "n_sequences", kI32, "number of sequences"},
    {Variable::kSmCount, "sm_count", kI32, "number of multiprocessors of the device"},
    {Variable::kIndexH, "index_h", kI32, "index head"},
    {Variable::kIndexD, "index_d", kI32, "element of an index vector"},
});
static_assert(kVariables.size() == kVariableCount);

template <class... V>
constexpr std::uint32_t bits(V... variables) {
  return ((1u << static_cast<unsigned>(variables)) | ... | 0u);
}

constexpr std::uint32_t kPair = bits(Variable::kQ, Variable::kK, Variable::kNQ, Variable::kNK);
constexpr std::uint32_t kEntry = bits(Variable::kH, Variable::kB, Variable::kNH);
constexpr std::uint32_t kIndexQuery =
    kEntry | bits(Variable::kQ, Variable::kNQ, Variable::kNK, Variable::kIndexH);
constexpr std::uint32_t kBounds =
    bits(Variable::kQ0, Variable::kQ1, Variable::kK0, Variable::kK1, Variable::kNQ, Variable::kNK);
constexpr std::uint32_t kIndices =
    kBounds | kEntry | bits(Variable::kI, Variable::kJ, Variable::kNI, Variable::kNJ);
constexpr std::uint32_t kEstimates =
    bits(Variable::kScore, Variable::kP, Variable::kRank, Variable::kMassBefore,
         Variable::kSimilarQ, Variable::kSimilarK, Variable::kVisible, Variable::kPMax);

constexpr std::array kSites = std::to_array<SiteInfo>({
    {Site::kMask, "attention.mask", kBool, "whether query token q sees key token k",
     kPair | kEntry},
    {Site::kScore, "attention.score", kF32, "the logit of query token q and key token k",
     kPair | kEntry | bits(Variable::kS)},
    {Site::kReference, "estimate.reference", kBool,
     "whether the exact score of (q, k) normalises the estimate", kPair},
    {Site::kExclude, "estimate.exclude", kBool,
     "whether tile (i, j) is left out of the normalisation",
     kIndices | bits(Variable::kSimilarQ, Variable::kSimilarK)},
    {Site::kFrom, "estimate.from", kF32, "the score of tile (i, j), in place of a comparison",
     kIndices},
    {Site::kIndexQ, "estimate.index.q", kF32,
     "element index_d of query token q's vector of index head index_h",
     kIndexQuery | bits(Variable::kIndexD)},
    {Site::kIndexK, "estimate.index.k", kF32, "element index_d of key token k's vector",
     bits(Variable::kB, Variable::kK, Variable::kNQ, Variable::kNK, Variable::kIndexD)},
    {Site::kIndexWeight, "estimate.index.weight", kF32,
     "what the products of query token q and index head index_h count", kIndexQuery},
    {Site::kKeep, "predictor.keep", kBool, "whether tile (i, j) is computed",
     kIndices | kEstimates},
    {Site::kGate, "gate", kBool, "whether key tile j is skipped (or exempt) for the rows in scope",
     kIndices | bits(Variable::kTileMax, Variable::kGap)},
    {Site::kSink, "attention.sink", kF32, "the logit of query token q that has no key",
     kEntry | bits(Variable::kQ, Variable::kNQ, Variable::kNK)},
    {Site::kWeight, "branches.weight", kF32, "what a branch's output of query token q counts",
     kEntry | bits(Variable::kQ, Variable::kNQ, Variable::kNK)},
    {Site::kLet, "let", std::nullopt, "a part of formulas, which read it by its name",
     kPair | kIndices | kEstimates |
         bits(Variable::kS, Variable::kTileMax, Variable::kGap, Variable::kIndexH,
              Variable::kIndexD)},
    {Site::kTile, "tile", kBool, "a property of the tile, derived from attention.mask",
     kBounds | kEntry},
    {Site::kLaunch, "launch", kI32, "a size or count that a launch needs",
     bits(Variable::kNB, Variable::kNH, Variable::kNHKv, Variable::kNSequences, Variable::kNQ,
          Variable::kNK, Variable::kSmCount)},
});

using enum ExprOp;
using enum Notation;

constexpr std::array kOperators = std::to_array<OperatorInfo>({
    {kLiteral, "", kNone, 0, kPrecedencePrimary, Signature::kNone, "number, true, false, inf"},
    {kVariable, "", kNone, 0, kPrecedencePrimary, Signature::kNone, "variable of the site"},
    {kParameter, "", kNone, 0, kPrecedencePrimary, Signature::kNone, "parameter of the spec"},
    {kToF32, "", kNone, 1, kPrecedencePrimary, Signature::kFloat, "promotion, never written"},
    {kNegate, "-", kPrefix, 1, kPrecedenceUnary, Signature::kNumeric, "negation"},
    {kNot, "not", kPrefix, 1, kPrecedenceNot, Signature::kLogical, "negation"},
    {kAdd, "+", kInfix, 2, kPrecedenceSum, Signature::kNumeric, "sum; i32 wraps"},
    {kSubtract, "-", kInfix, 2, kPrecedenceSum, Signature::kNumeric, "difference; i32 wraps"},
    {kMultiply, "*", kInfix, 2, kPrecedenceProduct, Signature::kNumeric, "product; i32 wraps"},
    {kDivide, "/", kInfix, 2, kPrecedenceProduct, Signature::kFloat,
     "quotient, always f32; in attention.score on a GPU to 2^-22 of its value, unless a condition "
     "or "
     "an integer is made of it"},
    {kFloorDivide, "//", kInfix, 2, kPrecedenceProduct, Signature::kInteger,
     "quotient rounded toward minus infinity; x // 0 is 0"},
    {kModulo, "%", kInfix, 2, kPrecedenceProduct, Signature::kInteger,
     "x - x // y * y; x % 0 is x"},
    {kShiftLeft, "<<", kInfix, 2, kPrecedenceShift, Signature::kInteger,
     "x * 2^y, wraps; y counts as 0 below 0, and from 32 on the result is 0"},
    {kShiftRight, ">>", kInfix, 2, kPrecedenceShift, Signature::kInteger,
     "x // 2^y; y counts as 0 below 0, and from 32 on the result is 0 or -1"},
    {kBitAnd, "&", kInfix, 2, kPrecedenceBitAnd, Signature::kInteger,
     "bits of both, in two's complement; between conditions write `and`"},
    {kBitXor, "^", kInfix, 2, kPrecedenceBitXor, Signature::kInteger, "bits of one of the two"},
    {kBitOr, "|", kInfix, 2, kPrecedenceBitOr, Signature::kInteger,
     "bits of either; between conditions write `or`"},
    {kLess, "<", kInfix, 2, kPrecedenceComparison, Signature::kComparison, "less"},
    {kLessEqual, "<=", kInfix, 2, kPrecedenceComparison, Signature::kComparison, "less or equal"},
    {kGreater, ">", kInfix, 2, kPrecedenceComparison, Signature::kComparison, "greater"},
    {kGreaterEqual, ">=", kInfix, 2, kPrecedenceComparison, Signature::kComparison,
     "greater or equal"},
    {kEqual, "==", kInfix, 2, kPrecedenceComparison, Signature::kComparison,
     "equal; of two conditions: both hold or neither"},
    {kNotEqual, "!=", kInfix, 2, kPrecedenceComparison, Signature::kComparison,
     "not equal; of two conditions: one of the two holds"},
    {kAnd, "and", kInfix, 2, kPrecedenceAnd, Signature::kLogical, "both"},
    {kOr, "or", kInfix, 2, kPrecedenceOr, Signature::kLogical, "either or both"},
    {kSelect, "select", kCall, 3, kPrecedencePrimary, Signature::kSelect,
     "select(c, x, y): x where c holds, else y; numbers, or two conditions"},
    {kMin, "min", kCall, 2, kPrecedencePrimary, Signature::kNumeric,
     "min(x, y): the smaller; the other one if one is NaN"},
    {kMax, "max", kCall, 2, kPrecedencePrimary, Signature::kNumeric,
     "max(x, y): the larger; the other one if one is NaN"},
    {kAbs, "abs", kCall, 1, kPrecedencePrimary, Signature::kNumeric, "abs(x): absolute value"},
    {kExp, "exp", kCall, 1, kPrecedencePrimary, Signature::kFloat, "exp(x): e to the power x"},
    {kExp2, "exp2", kCall, 1, kPrecedencePrimary, Signature::kFloat, "exp2(x): 2 to the power x"},
    {kLog, "log", kCall, 1, kPrecedencePrimary, Signature::kFloat, "log(x): natural logarithm"},
    {kLog2, "log2", kCall, 1, kPrecedencePrimary, Signature::kFloat, "log2(x): base 2 logarithm"},
    {kSqrt, "sqrt", kCall, 1, kPrecedencePrimary, Signature::kFloat,
     "sqrt(x): square root, as exact as a quotient"},
    {kTanh, "tanh", kCall, 1, kPrecedencePrimary, Signature::kFloat,
     "tanh(x); in attention.score on a GPU to 2^-11 of its value"},
    {kFloor, "floor", kCall, 1, kPrecedencePrimary, Signature::kFloat,
     "floor(x): largest whole number not above x, as f32"},
    {kCeil, "ceil", kCall, 1, kPrecedencePrimary, Signature::kFloat,
     "ceil(x): smallest whole number not below x, as f32"},
    {kBitLength, "bit_length", kCall, 1, kPrecedencePrimary, Signature::kInteger,
     "bit_length(x): number of bits of abs(x)"},
    {kToI32, "int", kCall, 1, kPrecedencePrimary, Signature::kTruncation,
     "int(x): x as i32, rounded toward 0; what i32 cannot hold becomes its nearest, NaN 0"},
    {kHash, "hash", kCall, 2, kPrecedencePrimary, Signature::kInteger,
     "hash(x, y): 32 random bits from a seed x and a counter y (MurmurHash3_x86_32 of y's bytes "
     "with the seed x), the same on every device; for more counters hash(hash(x, y), z)"},
    {kMin, "clamp", kCall, 3, kPrecedencePrimary, Signature::kNumeric,
     "clamp(x, low, high): min(max(x, low), high)"},
});

constexpr std::array kDims = std::to_array<DimInfo>({
    {ParamAxis::kBatch, "batch", "batch entry", Variable::kB},
    {ParamAxis::kHeads, "heads", "query head", Variable::kH},
    {ParamAxis::kQTiles, "q_tiles", "query tile", Variable::kI},
    {ParamAxis::kKTiles, "k_tiles", "key tile", Variable::kJ},
    {ParamAxis::kNQ, "n_q", "query token", std::nullopt},
    {ParamAxis::kNK, "n_k", "key token", std::nullopt},
    {ParamAxis::kFixed, "", "element", std::nullopt},
});

// Rows are found by index; this holds them to the order of their enumerators.
template <class Table>
constexpr bool in_order(const Table& table, std::size_t count, auto key) {
  for (std::size_t n = 0; n < count; ++n) {
    if (static_cast<std::size_t>(table[n].*key) != n) return false;
  }
  return true;
}
static_assert(in_order(kVariables, kVariables.size(), &VariableInfo::variable));
static_assert(in_order(kSites, kSites.size(), &SiteInfo::site));
static_assert(in_order(kOperators, kOperators.size() - 1, &OperatorInfo::op));
static_assert(in_order(kDims, kDims.size(), &DimInfo::axis));

template <class Table, class Match>
auto find(const Table& table, Match match) {
  const auto row = std::find_if(table.begin(), table.end(), match);
  return row == table.end() ? nullptr : &*row;
}

std::string names_offered(std::uint32_t variables) {
  std::string text;
  for (const VariableInfo& row : kVariables) {
    if ((variables >> static_cast<unsigned>(row.variable)) & 1u) {
      text += (text.empty() ? "`" : " `") + std::string(row.name) + "`";
    }
  }
  return text;
}

}  // namespace

std::span<const VariableInfo> all_variables() { return kVariables; }
std::span<const SiteInfo> all_sites() { return kSites; }
std::span<const OperatorInfo> all_operators() { return kOperators; }
std::span<const DimInfo> all_dims() { return kDims; }

const VariableInfo& info(Variable v) { return kVariables[static_cast<std::size_t>(v)]; }
const SiteInfo& info(Site s) { return kSites[static_cast<std::size_t>(s)]; }
const OperatorInfo& info(ExprOp op) { return kOperators[static_cast<std::size_t>(op)]; }
const DimInfo& info(ParamAxis axis) { return kDims[static_cast<std::size_t>(axis)]; }

std::string_view name_of(ExprType type) {
  constexpr std::array<std::string_view, 3> kNames = {"f32", "i32", "bool"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string name_of(const ParamDim& dim) {
  return dim.axis == ParamAxis::kFixed ? std::to_string(dim.extent)
                                       : std::string(info(dim.axis).name);
}

bool offers(Site site, Variable variable) {
  return ((info(site).variables >> static_cast<unsigned>(variable)) & 1u) != 0;
}

const VariableInfo* find_variable(std::string_view name) {
  return find(kVariables, [&](const VariableInfo& row) { return row.name == name; });
}

const OperatorInfo* find_function(std::string_view name) {
  return find(kOperators, [&](const OperatorInfo& row) {
    return row.notation == kCall && row.spelling == name;
  });
}

const OperatorInfo* find_infix(std::string_view spelling) {
  return find(kOperators, [&](const OperatorInfo& row) {
    return row.notation == kInfix && row.spelling == spelling;
  });
}

bool is_reserved(std::string_view name) {
  return find_variable(name) || find_function(name) || find_infix(name) || name == "not" ||
         name == "true" || name == "false" || name == "inf";
}

std::string expr_reference() {
  std::string text = "| site | decides | yields | reads |\n|---|---|---|---|\n";
  for (const SiteInfo& row : kSites) {
    text += "| `" + std::string(row.name) + "` | " + std::string(row.doc) + " | " +
            std::string(row.yields ? name_of(*row.yields) : "any type") + " | " +
            names_offered(row.variables) + " |\n";
  }
  text += "\n| variable | type | meaning |\n|---|---|---|\n";
  for (const VariableInfo& row : kVariables) {
    text += "| `" + std::string(row.name) + "` | " + std::string(name_of(row.type)) + " | " +
            std::string(row.doc) + " |\n";
  }
  text += "\n| operator | meaning |\n|---|---|\n";
  for (const OperatorInfo& row : kOperators) {
    if (row.notation == kNone) continue;
    text += "| `" + std::string(row.spelling) + "` | " + std::string(row.doc) + " |\n";
  }
  return text;
}

}  // namespace lacuna
