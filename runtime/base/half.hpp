// bf16 and f16 as 16 bits, and f32: conversions on the CPU. Widening is exact; narrowing rounds to
// nearest, ties to even. NaN stays NaN, a value too large becomes infinite.
#pragma once

#include <bit>
#include <cstdint>

namespace lacuna {

inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {  // NaN: rounding could carry it into infinity
    return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  }
  const std::uint32_t odd = (bits >> 16U) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U);
}

inline float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13U));
  }
  // Read with the exponent of f32, a number is 2^112 times too small; this holds for subnormals
  // too.
  const float scaled = std::bit_cast<float>(magnitude << 13U) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

inline std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U;  // NaN
  } else if (magnitude >= 0x477ff000U) {
    result = 0x7c00U;  // from 65520 on: infinity
  } else if (magnitude < 0x38800000U) {
    // Below 2^-14: adding 1/2 leaves the number, rounded to multiples of 2^-24, in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t odd = (magnitude >> 13U) & 1U;
    result = (magnitude - 0x38000000U + 0xfffU + odd) >> 13U;
  }
  return static_cast<std::uint16_t>(sign | result);
}

}  // namespace lacuna
