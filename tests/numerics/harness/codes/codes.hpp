// Keys and values of e4m3: codes, their scales, and the numbers that both stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "runtime/base/fp8.hpp"
#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

struct Codes {
  std::vector<std::uint8_t> codes;  ///< NaN where none was written
  std::vector<double> scales;       ///< f32

  Codes(std::size_t count, int scale_count, std::mt19937& random) : codes(count, 0x7f) {
    std::uniform_real_distribution<float> scale(0.01F, 0.03F);
    for (int n = 0; n < scale_count; ++n) scales.push_back(scale(random));
  }

  /// The numbers become those of codes at `place` and what follows, with one of the scales.
  void encode(std::span<double> numbers, DType dtype, std::size_t place, std::size_t scale) {
    const auto factor = static_cast<float>(scales[scale]);
    for (double& number : numbers) {
      codes[place] = f32_to_e4m3(static_cast<float>(number) / factor);
      number = round_to(dtype, e4m3_to_f32(codes[place]) * factor);
      ++place;
    }
  }
};

}  // namespace lacuna::numerics
