// Expr -> LLVM IR. What an expression means is compiler/expr/evaluate.cpp; tests/host compares the
// two on random expressions.
#pragma once

#include <array>

#include "compiler/expr/expr.hpp"
#include "runtime/cpu/llvm/jit/emitter.hpp"

namespace lacuna::host {

/// Where an expression is lowered: the value of each variable (i32 or f32, scalar or vector; null
/// where the site has none) and a pointer to the array of ParamView.
struct ExprScope {
  std::array<llvm::Value*, kVariableCount> variables{};
  llvm::Value* params = nullptr;

  llvm::Value*& operator[](Variable v) { return variables[static_cast<std::size_t>(v)]; }
};

/// The result is scalar if nothing it depends on is a vector.
llvm::Value* lower_expr(Emitter& e, const Expr& expr, const ExprScope& scope);

}  // namespace lacuna::host
