// Text -> typed Expr. All errors of an expression are reported in one go, with byte ranges.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/expr/expr.hpp"

namespace lacuna {

/// An error inside an expression; [begin, end) are bytes of its text. The reader moves it to its
/// place in the JSON file.
struct ExprError {
  Code code;
  std::uint32_t begin = 0, end = 0;
  std::string message;
  std::vector<std::string> notes, helps;
};

struct ParsedExpr {
  Expr expr;  ///< empty if there are errors
  std::vector<ExprError> errors;
  bool ok() const { return errors.empty(); }
};

/// Parses, resolves names against `site` and `parameters`, type-checks and folds constants.
ParsedExpr parse_expr(std::string_view text, Site site, std::span<const ParamSymbol> parameters);

/// Canonical text, minimal parentheses: parse_expr(print_expr(e)) == e.
std::string print_expr(const Expr& expr);

/// Folds constants and identities (x and true, select(true, a, b), x + 0 on i32, ...). f32 folding
/// happens only where the result is exact for every input.
Expr fold(Expr expr);

/// True if the (folded) expression is the literal `value`.
bool is_constant(const Expr& expr, double value);

/// Does the expression read this variable / this parameter (an index into `parameters`)?
bool uses(const Expr& expr, Variable variable);
bool uses_parameter(const Expr& expr, int parameter);

}  // namespace lacuna
