// Values for the parameters of a random spec. Each follows from a seed, its name and its place, so
// that all sequences of a batch read the same.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/expr/evaluate.hpp"
#include "compiler/spec/spec.hpp"
#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

/// Parameters as `evaluate` and as a launch take them; views stay valid while this lives unmoved.
struct RandomParams {
  std::vector<std::vector<float>> f32;
  std::vector<std::vector<std::int32_t>> i32;
  std::vector<ParamView> views;    ///< in the order of the spec
  std::vector<ParamValue> passed;  ///< without those whose default a launch takes
};

/// What dimensions of a batch count, by ParamAxis.
struct ParamExtents {
  int entries = 1, heads = 1, q_tiles = 1, k_tiles = 1, n_q = 1, n_k = 1;
  int of(const ParamDim& dim) const;
};

void draw_params(const VariantSpec& spec, const ParamExtents& extents, std::uint32_t seed,
                 RandomParams& params);

}  // namespace lacuna::numerics
