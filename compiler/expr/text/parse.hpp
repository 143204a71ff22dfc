// Text -> typed Expr. All errors of an expression are reported in one go, with byte ranges.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/expr.hpp"
#include "compiler/expr/fold.hpp"
#include "compiler/expr/print_expr.hpp"
#include "compiler/expr/text/expr_error.hpp"
#include "compiler/expr/text/lets.hpp"

namespace lacuna {

struct ParsedExpr {
  Expr expr;  ///< empty if there are errors, or in a definition that it reads
  std::vector<ExprError> errors;
  std::vector<std::size_t> lets;  ///< the names of `let` that it reads, by their index
  bool ok() const { return errors.empty(); }
};

/// Parses, resolves names against `site`, `parameters` and `lets`, type-checks and folds constants.
ParsedExpr parse_expr(std::string_view text, Site site, std::span<const ParamSymbol> parameters,
                      const Lets& lets = {});

}  // namespace lacuna
