// The expression language of a spec: formulas over tokens, tiles and parameters.
//
// One value type serves every site (mask, score, gate, ...) and every consumer: interpreter, CUDA
// printer, LLVM lowering and interval analysis. Text -> parse_expr -> Expr -> {evaluate,
// print_cuda, classify_mask, lower}. Sites, variables and functions are each one table
// (expr_tables.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lacuna {

enum class ExprType : std::uint8_t { kF32, kI32, kBool };

/// Operators. A node's type is the type of its result; operands are converted explicitly (kToF32),
/// so after parsing both operands of an arithmetic or comparison node have one type.
///
/// Integer arithmetic wraps at 32 bits. `//` and `%` round toward minus infinity;
/// x // 0 == 0 and x % 0 == x. `/` is always f32. bit_length(x) is the number of bits of |x|.
/// min and max of f32 return the other operand if one is NaN. int(x) rounds toward 0, to the
/// nearest i32 where x has none, NaN to 0. `&`, `|`, `^` take two's complement. x << n is x * 2^n
/// and x >> n is x // 2^n, for n below 0 and above 32 as for 0 and 32. hash(x, y) is
/// MurmurHash3_x86_32 of the four bytes of y (the lowest first) with the seed x.
enum class ExprOp : std::uint8_t {
  kLiteral,    ///< `literal`
  kVariable,   ///< `symbol` is a Variable
  kParameter,  ///< `symbol` indexes Expr::parameters; children are one i32 index for each dimension
  kToF32,
  kNegate,
  kNot,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kShiftLeft,
  kShiftRight,
  kBitAnd,
  kBitXor,
  kBitOr,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kSelect,  ///< children: condition, value if true, value if false
  kMin,
  kMax,
  kAbs,
  kExp,
  kExp2,
  kLog,
  kLog2,
  kSqrt,
  kTanh,
  kFloor,
  kCeil,
  kBitLength,
  kToI32,
  kHash,
};

/// Of two numbers: the result is a bool.
constexpr bool is_comparison(ExprOp op) { return op >= ExprOp::kLess && op <= ExprOp::kNotEqual; }

/// a op b is b mirrored(op) a, of a comparison.
constexpr ExprOp mirrored(ExprOp op) {
  switch (op) {
    case ExprOp::kLess:
      return ExprOp::kGreater;
    case ExprOp::kLessEqual:
      return ExprOp::kGreaterEqual;
    case ExprOp::kGreater:
      return ExprOp::kLess;
    case ExprOp::kGreaterEqual:
      return ExprOp::kLessEqual;
    default:
      return op;
  }
}

/// Of f32: does a GPU work it out by its special function unit?
constexpr bool is_special_function(ExprOp op) {
  switch (op) {
    case ExprOp::kDivide:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kSqrt:
    case ExprOp::kTanh:
      return true;
    default:
      return false;
  }
}

/// Everything an expression can read besides parameters; names and types are in expr_tables.hpp.
enum class Variable : std::uint8_t {
  kQ,
  kK,
  kNQ,
  kNK,
  kH,
  kB,  // tokens, lengths, head, batch entry
  kS,  // logit, natural units
  kI,
  kJ,
  kNI,
  kNJ,
  kQ0,
  kQ1,
  kK0,
  kK1,  // tile indices; first and last token of a tile
  kScore,
  kP,
  kRank,
  kMassBefore,
  kSimilarQ,
  kSimilarK,
  kVisible,
  kPMax,  // estimates
  kTileMax,
  kGap,  // gate
  kNH,   // query heads
  kNB,
  kNHKv,        // launch: batch entries, KV heads
  kNSequences,  // launch: batch entries, also where the values are those of each of them
  kSmCount,     // launch: multiprocessors of the device
  kIndexH,
  kIndexD,  // index vectors: head, element
};
inline constexpr int kVariableCount = static_cast<int>(Variable::kIndexD) + 1;

/// Where an expression stands decides what it may read and what it must yield.
enum class Site : std::uint8_t {
  kMask,         ///< attention.mask: (q, k) -> bool
  kScore,        ///< attention.score: (s, q, k) -> f32
  kReference,    ///< estimate.reference: (q, k) -> bool
  kExclude,      ///< estimate.exclude: tile (i, j) and its self-similarity -> bool
  kFrom,         ///< estimate.from: tile (i, j) -> f32
  kIndexQ,       ///< estimate.index.q: (index_h, q, index_d) -> f32
  kIndexK,       ///< estimate.index.k: (k, index_d) -> f32
  kIndexWeight,  ///< estimate.index.weight: (index_h, q) -> f32
  kKeep,         ///< predictor.keep: tile (i, j) and its estimates -> bool
  kGate,         ///< gate.skip, gate.exempt: (tile_max, gap) and tile indices -> bool
  kSink,         ///< attention.sink: (q, h, b) -> f32
  kWeight,       ///< branches[N].weight: (q, h, b) -> f32
  kLet,          ///< let: a part of formulas of other sites, of any type
  kTile,         ///< derived from a mask by interval analysis: tile bounds -> bool
  kLaunch,       ///< LaunchProgram: shape, device -> i32
};

/// What a dimension of a parameter runs along. Head, batch and tile dimensions are indexed by the
/// site itself; token dimensions, and those of a fixed extent, are written out: `start[q]`.
enum class ParamAxis : std::uint8_t { kBatch, kHeads, kQTiles, kKTiles, kNQ, kNK, kFixed };

/// One dimension of a parameter; only that of kFixed has an extent of its own.
struct ParamDim {
  ParamAxis axis = ParamAxis::kBatch;
  std::int32_t extent = 0;
  constexpr ParamDim() = default;
  constexpr ParamDim(ParamAxis along, std::int32_t elements = 0) : axis(along), extent(elements) {}
  bool operator==(const ParamDim&) const = default;
};
inline constexpr int kMaxParamRank = 4;
inline constexpr std::int32_t kMaxFixedExtent = 99999;

/// What the parser has to know about a declared parameter.
struct ParamSymbol {
  std::string name;
  ExprType type = ExprType::kF32;  ///< kF32 or kI32
  std::vector<ParamDim> shape;     ///< empty: scalar
  bool monotone = false;           ///< non-decreasing along its last dimension
  /// The smallest and the largest whole number within the range that the spec declares for its
  /// values (spec/declared_ranges.hpp).
  std::int32_t least = std::numeric_limits<std::int32_t>::min();
  std::int32_t most = std::numeric_limits<std::int32_t>::max();
  bool operator==(const ParamSymbol&) const = default;
};

/// A node's operands: earlier nodes; -1 where unused. A parameter may have kMaxParamRank of them,
/// an operator at most three.
using ExprChildren = std::array<std::int32_t, kMaxParamRank>;
inline constexpr ExprChildren kNoChildren{-1, -1, -1, -1};

struct ExprNode {
  ExprOp op = ExprOp::kLiteral;
  ExprType type = ExprType::kF32;
  ExprChildren children = kNoChildren;
  double literal = 0;  ///< exact f32 or i32 value; 0 or 1 for bool
  std::uint16_t symbol = 0;
  std::uint32_t begin = 0, end = 0;  ///< bytes of Expr::text this node came from, for carets
};

inline bool is_variable(const ExprNode& node, Variable variable) {
  return node.op == ExprOp::kVariable && node.symbol == static_cast<std::uint16_t>(variable);
}

/// A typed expression: nodes in post-order (children before parents), the last one is the result.
/// An Expr without nodes means "not given".
struct Expr {
  std::string text;  ///< as written, or printed for derived expressions
  std::vector<ExprNode> nodes;
  std::vector<ParamSymbol> parameters;  ///< all parameters of the spec, in declaration order

  bool empty() const { return nodes.empty(); }
  const ExprNode& root() const { return nodes.back(); }
};

/// Same meaning: equal nodes and parameters; source text and positions do not count.
bool operator==(const Expr& a, const Expr& b);

/// A name that formulas may write for a part of them. The parser puts the nodes in its place, so
/// nothing behind it knows such names.
struct LetSymbol {
  std::string name;
  Expr expr;  ///< Site::kLet; empty: there is an error in it
  bool operator==(const LetSymbol&) const = default;
};

}  // namespace lacuna
