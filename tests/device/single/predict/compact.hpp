// Variants of select/compact.cuh that the tests run. With a mask, a pair is visible if
// k <= q + n_k - n_q.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

struct CompactShape {
  int keep_q, keep_k, tile_q, tile_k;
  bool has_mask, shared_heads;
};

struct CompactVariant {
  CompactShape shape;
  emulation::Kernel compact;
};

const std::vector<CompactVariant>& compact_variants();
/// Of rows by themselves, or of two that a block of attend takes together.
emulation::Kernel order_rows_kernel(int work_tiles);

}  // namespace single
