// A small attention problem as files, the same from run to run.
#pragma once

#include <cstdint>

#include "tools/io/safetensors.hpp"

namespace lacuna::tests {

/// q [heads, tokens, d], k and v [1, tokens, d] of one dtype, normal values.
tools::Safetensors small_problem(std::int64_t heads, std::int64_t tokens, std::int64_t d,
                                 tools::ArrayType type);

}  // namespace lacuna::tests
