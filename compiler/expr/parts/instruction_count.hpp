// How long a part of a formula is in machine code: what each copy of it costs the CUDA compiler.
// operation_count.hpp counts what the author of a formula reads; this is how many instructions
// these operations become.
#pragma once

#include <span>

#include "compiler/expr/expr.hpp"

namespace lacuna {

/// About how many instructions the nodes take that change with one of `changing`. An element of a
/// parameter has each index clamped and multiplied by a stride of 64 bits; a division by anything
/// but a literal takes some forty instructions, or a dozen if its reciprocal was prepared
/// (`has_divisors`).
int instruction_count(const Expr& part, std::span<const Variable> changing,
                      bool has_divisors = false);

}  // namespace lacuna
