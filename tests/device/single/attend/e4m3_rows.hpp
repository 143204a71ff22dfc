// Kernels of the mma family that differ in one thing: whether keys and values are rows of e4m3 or
// of the 16-bit numbers that those stand for.
#pragma once

#include <string>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

struct RowsVariant {
  std::string name;
  int head_dim, tile_q, tile_k;
  bool is_bf16;
  int smem_bytes_16_bits, smem_bytes_e4m3;
  emulation::Kernel of_16_bits, of_e4m3;
};

const std::vector<RowsVariant>& rows_variants();

}  // namespace single
