// A naive answer in fp64 to what a Program says: every pair of tokens, every tile, one after the
// other. Expressions are interpreted; everything else is written from ir/program.hpp.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"

namespace lacuna::host_tests {

struct Sizes {
  int n_b = 1, n_h = 1, n_h_kv = 1, n_q = 64, n_k = 64, d = 64;
};

/// Contiguous inputs, already rounded to the dtype; lists are used if the Program has them.
struct Inputs {
  Sizes sizes;
  std::vector<float> q, k, v;
  std::vector<ParamView> params;
  std::vector<std::int32_t> list_indices, list_counts;  ///< capacity: all key tiles
};

struct Outputs {
  std::vector<double> o, lse;
  std::vector<std::int32_t> counts;
  std::vector<std::uint8_t> tile_mask;
};

int tiles(int tokens, int tile);

/// Normally distributed inputs; keys of every third tile are large, so that gates bite.
Inputs make_inputs(const Program& program, const Sizes& sizes, std::uint32_t seed);

/// A random ascending subset of the key tiles for each row, all flagged where `flagged`.
void add_lists(const Program& program, Inputs& inputs, bool flagged, std::uint32_t seed);

Outputs reference(const Program& program, const Inputs& inputs);

float round_to(DType dtype, float x);
std::uint16_t to_bits16(DType dtype, float x);
float from_bits16(DType dtype, std::uint16_t bits);

}  // namespace lacuna::host_tests
