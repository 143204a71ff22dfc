// Variants of prepare/permute.cuh that the tests run.
#pragma once

#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

struct PermuteVariant {
  int head_dim;
  emulation::Kernel permute_q, permute_k, permute_v, unpermute;
  emulation::Kernel unpermute_o;  ///< of a spec without lse
};

const std::vector<PermuteVariant>& permute_variants();

}  // namespace single
