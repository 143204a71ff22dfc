#pragma once

#include <string>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// Canonical text, minimal parentheses: parse_expr(print_expr(e)) == e.
std::string print_expr(const Expr& expr);

}  // namespace lacuna
