// What one sequence of a batch computes, of variants without branches, and the parameters that all
// sequences share.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/numerics/harness/sequences.hpp"

namespace lacuna::numerics {

/// Does a twin (variants.hpp) draw the parameters, the same ones whatever the lengths, or none?
bool has_own_params(const SequenceCase& c);
/// Of the others.
std::vector<ParamValue> params_of(const SequenceCase& c);

/// `lengths`: queries and keys; `entry`: number of the sequence.
Variant variant_of(const SequenceCase& c, std::pair<int, int> lengths, std::uint32_t seed,
                   int entry);

}  // namespace lacuna::numerics
