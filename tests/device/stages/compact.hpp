// Variants of predict/compact.cuh that the tests run. With a mask, a pair is visible if
// k <= q + n_k - n_q.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

namespace stages {

struct CompactShape {
  int keep_q, keep_k, tile_q, tile_k;
  bool has_mask, shared_heads;
};

struct CompactVariant {
  CompactShape shape;
  emulation::Kernel compact;
};

const std::vector<CompactVariant>& compact_variants();
emulation::Kernel order_rows_kernel();

}  // namespace stages
