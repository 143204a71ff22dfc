#include "tests/device/emulation/byte_matrix.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/matrix.hpp"

namespace emulation {
namespace {

constexpr int kRows = 16, kColumns = 8, kDepth = 32;

int from_s8(std::uint8_t byte) { return static_cast<std::int8_t>(byte); }

template <class T>
struct Product {
  T (&c)[4];
  const std::uint32_t (&a)[4];
  std::uint32_t b[2];
};

/// Lane 4 g + t holds of a: rows g and g + 8, bytes 4 t .. 4 t + 3 and those 16 on; of b: the same
/// rows of column g; of c: rows g and g + 8, columns 2 t + {0, 1}.
template <class T, T (*kConvert)(std::uint8_t)>
void combine_products(Operands lanes) {
  const auto product = [&](int lane) -> const Product<T>& {
    return *static_cast<const Product<T>*>(lanes[static_cast<std::size_t>(lane)]);
  };
  const auto byte = [](std::uint32_t bits, int n) {
    return kConvert(static_cast<std::uint8_t>(bits >> (8 * n)));
  };
  T a[kRows][kDepth], b[kDepth][kColumns], c[kRows][kColumns];
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const Product<T>& p = product(lane);
    const int g = lane / 4, t = lane % 4;
    for (int n = 0; n < 4; ++n) {
      for (int part = 0; part < 4; ++part)
        a[g + part % 2 * 8][4 * t + part / 2 * 16 + n] = byte(p.a[part], n);
      for (int part = 0; part < 2; ++part) b[4 * t + part * 16 + n][g] = byte(p.b[part], n);
    }
  }
  multiply(a, b, c);
  for (int lane = 0; lane < kWarpLanes; ++lane)
    for (int i = 0; i < 4; ++i) product(lane).c[i] += c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

}  // namespace

namespace {

float value_of_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float sign = code >= 0x80 ? -1.0F : 1.0F;
  if ((code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

std::array<float, 256> e4m3_values() {
  std::array<float, 256> values;
  for (std::size_t code = 0; code < values.size(); ++code)
    values[code] = value_of_e4m3(static_cast<std::uint8_t>(code));
  return values;
}

}  // namespace

float e4m3_to_float(std::uint8_t code) {
  static const std::array<float, 256> kValues = e4m3_values();
  return kValues[code];
}

std::uint8_t round_to_e4m3(float value) {
  if (std::isnan(value)) return 0x7f;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const float size = std::fabs(value);
  if (size >= 448) return static_cast<std::uint8_t>(sign | 0x7e);
  // Eighths of the power of two below, which is 2^-6 for denormals: their codes continue.
  const int exponent = size < 0x1p-6F ? -6 : std::ilogb(size);
  const int eighths = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));
  return static_cast<std::uint8_t>(sign | ((exponent + 6) * 8 + eighths));
}

void multiply_s8(int (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  Product<int> product{c, a, {b0, b1}};
  meet_warp(combine_products<int, from_s8>, &product);
}

void multiply_e4m3(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  Product<float> product{c, a, {b0, b1}};
  meet_warp(combine_products<float, e4m3_to_float>, &product);
}

}  // namespace emulation
