// e4m3 as 8 bits, and f32: conversions on the CPU. Sign, four bits of exponent (bias 7), three of
// mantissa; no infinity, NaN is 0x7f. Narrowing rounds to nearest, ties to even, and saturates.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lacuna {

inline constexpr float kLargestE4M3 = 448;

inline float e4m3_to_f32(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80U) << 24U;
  const std::uint32_t magnitude = code & 0x7fU;
  if (magnitude == 0x7fU) return std::bit_cast<float>(sign | 0x7fc00000U);
  // Read with the exponent of f32, a number is 2^120 times too small; this holds for subnormals
  // too.
  const float scaled = std::bit_cast<float>(magnitude << 20U) * 0x1p120F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

inline std::uint8_t f32_to_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24U) & 0x80U;
  const float magnitude = std::fabs(value);
  std::uint32_t code = 0;
  if (std::isnan(value)) {
    code = 0x7f;
  } else if (magnitude >= kLargestE4M3) {
    code = 0x7e;
  } else if (magnitude < 0x1p-6F) {
    // Subnormal: adding 2^14 leaves the number, rounded to multiples of 2^-9, in the low bits.
    code =
        std::bit_cast<std::uint32_t>(magnitude + 0x1p14F) - std::bit_cast<std::uint32_t>(0x1p14F);
  } else {
    const std::uint32_t exact = bits & 0x7fffffffU;
    const std::uint32_t odd = (exact >> 20U) & 1U;
    code = (exact - (120U << 23U) + 0x7ffffU + odd) >> 20U;
  }
  return static_cast<std::uint8_t>(sign | code);
}

/// The nearest value that e4m3 has.
inline float round_to_e4m3(float value) { return e4m3_to_f32(f32_to_e4m3(value)); }

}  // namespace lacuna
