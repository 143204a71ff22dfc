// The vocabulary of the expression language: sites, variables, operators and parameter dimensions.
//
// Each is one table; the parser, both printers, the diagnostics and the reference follow from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

struct VariableInfo {
  Variable variable;
  std::string_view name;
  ExprType type;
  std::string_view doc;
};

struct SiteInfo {
  Site site;
  std::string_view name;           ///< the field of the spec
  std::optional<ExprType> yields;  ///< none: any type
  std::string_view doc;            ///< what the expression decides, and for each what
  std::uint32_t variables;         ///< bit n: Variable n may be read
};

/// How an operator is written.
enum class Notation : std::uint8_t { kNone, kPrefix, kInfix, kCall };

/// What an operator takes and yields.
enum class Signature : std::uint8_t {
  kNone,
  kNumeric,     ///< f32 or i32 (i32 is promoted if both occur), yields the same
  kFloat,       ///< f32 or i32 promoted to f32, yields f32
  kInteger,     ///< i32, yields i32
  kTruncation,  ///< f32 or i32, yields i32
  kComparison,  ///< f32 or i32 (promoted if both occur), yields bool; == and != also of two bool
  kLogical,     ///< bool, yields bool
  kSelect,      ///< bool, then two operands as kNumeric, or two bool
};

struct OperatorInfo {
  ExprOp op;
  std::string_view spelling;
  Notation notation;
  int arity;
  int precedence;  ///< higher binds tighter
  Signature signature;
  std::string_view doc;
};

/// Binding strength, loosest first; what has no operators of its own is a primary.
inline constexpr int kPrecedenceOr = 1, kPrecedenceAnd = 2, kPrecedenceNot = 3,
                     kPrecedenceComparison = 4, kPrecedenceBitOr = 5, kPrecedenceBitXor = 6,
                     kPrecedenceBitAnd = 7, kPrecedenceShift = 8, kPrecedenceSum = 9,
                     kPrecedenceProduct = 10, kPrecedenceUnary = 11, kPrecedencePrimary = 12;

struct DimInfo {
  ParamAxis axis;
  std::string_view name;
  std::string_view doc;
  std::optional<Variable> index;  ///< what indexes it when no index is written; none: write it out
};

std::span<const VariableInfo> all_variables();
std::span<const SiteInfo> all_sites();
std::span<const OperatorInfo> all_operators();  ///< includes `clamp`, which parses to min and max
std::span<const DimInfo> all_dims();

const VariableInfo& info(Variable);
const SiteInfo& info(Site);
const OperatorInfo& info(ExprOp);
const DimInfo& info(ParamAxis);
std::string_view name_of(ExprType);
/// "heads", or the extent: "32".
std::string name_of(const ParamDim&);

bool offers(Site, Variable);

/// Null if there is no such name.
const VariableInfo* find_variable(std::string_view name);
const OperatorInfo* find_function(std::string_view name);
const OperatorInfo* find_infix(std::string_view spelling);

/// True for words that cannot name a parameter: variables, functions, `and`, `or`, `not`, `true`,
/// `false`, `inf`.
bool is_reserved(std::string_view name);

/// Reference of sites, variables and operators in Markdown.
std::string expr_reference();

}  // namespace lacuna
