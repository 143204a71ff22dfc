// The matrix instructions of a warp: fragments of four lanes a row, eight rows a matrix.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace emulation {

/// ldmatrix.x4: four 8x8 matrices of 16-bit elements, lane l giving the address of row l % 8 of
/// matrix l / 8. Lane l receives elements 2 * (l % 4) and the next of row l / 4; of column l / 4 if
/// transposed.
void load_matrices(std::uint32_t (&matrices)[4], std::uint32_t address, bool transposed);

/// stmatrix.x4: the inverse, untransposed.
void store_matrices(std::uint32_t address, const std::uint32_t (&matrices)[4]);

enum class Format : std::uint8_t { kBF16, kF16 };

float f16_to_float(std::uint16_t bits);
inline float to_float(Format format, std::uint16_t bits) {
  if (format == Format::kF16) return f16_to_float(bits);
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
/// To nearest even; NaN becomes the canonical one, as on the GPU.
std::uint16_t round_to(Format format, float value);

/// mma.m16n8k16, row.col: c += a * b with f32 accumulators.
void multiply_matrices(Format format, float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1);

/// The product of instructions of one warp. Four columns at a time in a register, which takes a
/// third of the time; each sum is taken in the order of depth.
template <class T, int kRows, int kDepth, int kColumns>
void multiply(const T (&a)[kRows][kDepth], const T (&b)[kDepth][kColumns],
              T (&c)[kRows][kColumns]) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  static_assert(kColumns == 8);
  Four right[kDepth][2];
  std::memcpy(right, b, sizeof(b));
  for (int row = 0; row < kRows; ++row) {
    Four low = {}, high = {};
    for (int k = 0; k < kDepth; ++k) {
      low += a[row][k] * right[k][0];
      high += a[row][k] * right[k][1];
    }
    std::memcpy(c[row], &low, sizeof(low));
    std::memcpy(c[row] + 4, &high, sizeof(high));
  }
}

}  // namespace emulation
