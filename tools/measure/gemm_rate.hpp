// What a GPU reaches on large matrices by cuBLAS: the measure of the rates of attention, whose work
// is matrix products too.
#pragma once

#include <string>

#include "tools/common/device.hpp"

namespace lacuna::tools {

struct GemmRate {
  double tflops = 0;      ///< of bf16 products that add up in f32; 0: not measured
  std::string missing{};  ///< why not, in one line
};

/// Half a second of products of random normal matrices, one after the other as fast as the GPU
/// takes them: long enough for clocks and power to settle. Never a failure; `place` is a GPU.
GemmRate measure_gemm_rate(const Place& place);

}  // namespace lacuna::tools
