// Variants of prepare/prepare.cuh that the tests run.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

/// Fields as in the Config of prepare_tokens; groups in the order of lacuna::QuantGroup.
struct PrepareShape {
  bool is_query, is_bf16;
  int head_dim, tokens;
  bool smooth, smooth_summary;
  int summary_tile, similarity_tile;
  bool gram_max;
  int bits, group, tile;
  int estimate_bits, estimate_group, estimate_tile;
  bool bias;
};

struct PrepareVariant {
  PrepareShape shape;
  emulation::Kernel kernel;
};

const std::vector<PrepareVariant>& prepare_variants();

}  // namespace single
