// The interpreter: what an expression means. Every other consumer is tested against this one.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "compiler/expr/expr.hpp"
#include "compiler/expr/scalar.hpp"

namespace lacuna {

/// A parameter at run time, for the interpreter and the compiled CPU code; the device has as many
/// extents and strides as it needs (templates/args/expr.cuh). Indices are clamped to
/// [0, extent - 1].
struct ParamView {
  const void* data = nullptr;  ///< f32 or i32 elements; null: `value` stands for every element
  Scalar value{};
  std::int32_t extent[kMaxParamRank] = {1, 1, 1, 1};
  std::int64_t stride[kMaxParamRank] = {0, 0, 0, 0};  ///< in elements
};

struct Bindings {
  std::array<Scalar, kVariableCount> variables{};  ///< indexed by Variable
  std::span<const ParamView> parameters;           ///< in the order of Expr::parameters

  void set(Variable v, std::int32_t x) { variables[static_cast<std::size_t>(v)].i32 = x; }
  void set(Variable v, float x) { variables[static_cast<std::size_t>(v)].f32 = x; }
};

/// The value of a non-empty expression. All operators are total: nothing it computes can fault.
Scalar evaluate(const Expr& expr, const Bindings& bindings);
/// Of a condition; one that is not given has the value `otherwise`.
bool holds(const Expr& expr, const Bindings& bindings, bool otherwise);

}  // namespace lacuna
