// Expr -> CUDA C++ text, for the hook functions of a generated kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// How the surrounding hook names things, e.g. kNQ -> "args.n_q", parameter -> "args.threshold".
struct CudaNames {
  std::function<std::string(Variable)> variable;
  std::function<std::string(const ParamSymbol&)> parameter;
  /// The name of a variable that already holds the node's value; "" if there is none.
  std::function<std::string(std::int32_t node)> known = {};
  /// The lacuna::IntegerDivisor of a node whose reciprocal is there already; "": there is none.
  std::function<std::string(std::int32_t node)> divisor = {};
  /// tanh to 2^-11 of its value, in one instruction; else to about 1e-6. Quotients and roots of
  /// which no condition and no integer is made (deciding_nodes) to two units of the last digit,
  /// without the slow path of those that are correctly rounded.
  bool approximates = false;
};

/// A C++ expression of type float, int or bool. Functions that C++ lacks (floor division, bit
/// length, parameter access with clamped indices) are those of templates/args/expr.cuh. i32
/// overflow is written out only where operands below 2^24 can reach it (hashes).
std::string print_cuda(const Expr& expr, const CudaNames& names);

/// The same of the part below one node.
std::string print_cuda(const Expr& expr, std::int32_t node, const CudaNames& names);

/// The body of a function: the value that it returns, and before that local constants. A part that
/// calls a costly function and would be printed in several places is such a constant
/// (repeated_parts.hpp), because NVRTC does not merge all equal calls: for a score with the same
/// two logarithms in 15 places attend had 226 lg2 instead of 72, and compiled in 9.6 s instead
/// of 3.2 (sm_90a, NVRTC 13.0). What one side of a condition alone reads is a constant there: a
/// score of MagicPIG's, whose weights are on such a side, compiles in 4.5 s instead of 38.
struct CudaBody {
  std::vector<std::string> locals;
  std::string value;
  CudaBody(std::string only) : value(std::move(only)) {}
  CudaBody(const char* only) : value(only) {}
};
/// Names of constants are `prefix` and a number.
CudaBody print_cuda_body(const Expr& expr, const CudaNames& names,
                         const std::string& prefix = "value_");

/// Of an expression whose root is a parameter: the parameter and its indices, as arguments of a
/// call.
std::string print_cuda_element(const Expr& element, const CudaNames& names);

/// The type that such an expression has in C++.
std::string_view cuda_name(ExprType type);

}  // namespace lacuna
