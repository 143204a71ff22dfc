// The matrix instruction for bytes, mma.m16n8k32, and the 8-bit float it can multiply.
#pragma once

#include <cstdint>

namespace emulation {

/// e4m3: bias 7, no infinity, largest 448, 0x7f and 0xff are NaN.
float e4m3_to_float(std::uint8_t code);
/// To nearest even, saturating; NaN becomes 0x7f.
std::uint8_t round_to_e4m3(float value);

/// row.col: c += a * b. Signed bytes with i32 accumulators, or e4m3 with f32.
void multiply_s8(int (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
void multiply_e4m3(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);

}  // namespace emulation
