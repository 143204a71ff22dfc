// Variants of prepare/statistics.cuh that the tests run.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

struct StatisticsVariant {
  int tensor;  ///< 0 q, 1 k, 2 v
  int head_dim;
  bool is_bf16;
  float range;                ///< of v
  emulation::Kernel partial;  ///< token_statistics
  emulation::Kernel finish;   ///< finish_statistics
};

const std::vector<StatisticsVariant>& statistics_variants();

}  // namespace single
