// Random tensors of a shape: what `bench` computes on.
#pragma once

#include <cstdint>

#include "compiler/emit/launch_program.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/measure/value_sets.hpp"

namespace lacuna::tools {

/// Of a density that a caller asks for; other specs decide themselves which tiles are visited.
inline constexpr const char* kDensityIsForLists =
    "--density is only for specs with \"mask\": \"external\"";

/// q, k and v of independent normal values, changed as the value set says, which is none of a file;
/// the same for the same seed. Zeros or constants would let a GPU run faster than it can on real
/// tensors, for they draw less power. `head_dim_v`: elements of a row of v, 0: as head_dim.
Inputs random_inputs(const LaunchShape& shape, int head_dim, DType dtype, std::uint64_t seed,
                     const ValueSet& values = {}, int head_dim_v = 0);

/// u8 [batch, heads, q_tiles, k_tiles]: each tile visited with this probability, one at least in
/// each row.
Array random_tile_mask(const LaunchShape& shape, int tile_q, int tile_k, double density,
                       std::uint64_t seed);

}  // namespace lacuna::tools
