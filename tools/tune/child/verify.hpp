// Is a candidate's output right? Tolerances follow from what is rounded, as those of
// tests/numerics/harness/harness.hpp do.
#pragma once

#include <span>
#include <string>

#include "compiler/spec/spec.hpp"

namespace lacuna::tune {

/// Allowed sum|d| / sum|o| and max|d| / max|o| between an output and an exact one.
struct Tolerance {
  double rel_l1 = 0, rel_max = 0;
};
Tolerance tolerance_of(const VariantSpec& spec, DType dtype);
/// Between two outputs, each of which may be off by `allowed`.
Tolerance between_two(const Tolerance& allowed);

/// "" or how far `got` is from `expected`: "relative L1 error 3.1e-02, allowed 4.0e-03". What is
/// NaN or infinite in one has to be in the other.
std::string compare_outputs(std::span<const float> expected, std::span<const float> got,
                            const Tolerance& allowed);

}  // namespace lacuna::tune
