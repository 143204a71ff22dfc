#include "tests/device/emulation/matrix.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace emulation {
namespace {

constexpr int kRows = 16, kColumns = 8, kDepth = 16;

template <class T>
T& operands_of(Operands lanes, int lane) {
  return *static_cast<T*>(lanes[static_cast<std::size_t>(lane)]);
}

/// Bits of the n-th 16-bit element of a register pair.
std::uint16_t half_of(std::uint32_t pair, int n) {
  return static_cast<std::uint16_t>(pair >> (16 * n));
}

struct Load {
  std::uint32_t (&matrices)[4];
  std::uint32_t address;
  bool transposed;
};

void combine_loads(Operands lanes) {
  for (int m = 0; m < 4; ++m) {
    std::uint16_t elements[8][8];
    for (int row = 0; row < 8; ++row) {
      const std::uint32_t address = operands_of<Load>(lanes, m * 8 + row).address;
      if (address % 16 != 0) throw Fault("ldmatrix of an address that is no multiple of 16");
      std::memcpy(elements[row], read_shared(address, 16, Actor::kWarp), 16);
    }
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const Load& load = operands_of<Load>(lanes, lane);
      const int row = lane / 4, column = lane % 4 * 2;
      const std::uint32_t low = load.transposed ? elements[column][row] : elements[row][column];
      const std::uint32_t high =
          load.transposed ? elements[column + 1][row] : elements[row][column + 1];
      load.matrices[m] = low | high << 16;
    }
  }
}

struct Store {
  const std::uint32_t (&matrices)[4];
  std::uint32_t address;
};

void combine_stores(Operands lanes) {
  for (int m = 0; m < 4; ++m) {
    for (int row = 0; row < 8; ++row) {
      const std::uint32_t address = operands_of<Store>(lanes, m * 8 + row).address;
      if (address % 16 != 0) throw Fault("stmatrix to an address that is no multiple of 16");
      for (int pair = 0; pair < 4; ++pair) {
        const std::uint32_t word = operands_of<Store>(lanes, row * 4 + pair).matrices[m];
        std::memcpy(write_shared(address + static_cast<unsigned>(pair) * 4, 4, Actor::kWarp), &word,
                    sizeof(word));
      }
    }
  }
}

struct Product {
  Format format;
  float (&c)[4];
  const std::uint32_t (&a)[4];
  std::uint32_t b[2];
};

/// Lane 4 g + t holds of a: rows g and g + 8, columns 2 t + {0, 1, 8, 9}; of b: the same rows of
/// column g; of c: rows g and g + 8, columns 2 t + {0, 1}.
void combine_products(Operands lanes) {
  float a[kRows][kDepth], b[kDepth][kColumns], c[kRows][kColumns];
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const Product& p = operands_of<Product>(lanes, lane);
    const int g = lane / 4, t = lane % 4;
    for (int n = 0; n < 2; ++n) {
      for (int half = 0; half < 4; ++half)
        a[g + half % 2 * 8][2 * t + half / 2 * 8 + n] = to_float(p.format, half_of(p.a[half], n));
      for (int half = 0; half < 2; ++half)
        b[2 * t + half * 8 + n][g] = to_float(p.format, half_of(p.b[half], n));
    }
  }
  multiply(a, b, c);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const Product& p = operands_of<Product>(lanes, lane);
    for (int i = 0; i < 4; ++i) p.c[i] += c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

std::vector<float> f16_values() {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    values.push_back(static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits))));
  return values;
}

}  // namespace

void load_matrices(std::uint32_t (&matrices)[4], std::uint32_t address, bool transposed) {
  Load load{matrices, address, transposed};
  meet_warp(combine_loads, &load);
}

void store_matrices(std::uint32_t address, const std::uint32_t (&matrices)[4]) {
  Store store{matrices, address};
  meet_warp(combine_stores, &store);
}

float f16_to_float(std::uint16_t bits) {
  static const std::vector<float> kValues = f16_values();  // conversion by the CPU is no baseline
  return kValues[bits];
}

std::uint16_t round_to(Format format, float value) {
  if (std::isnan(value)) return 0x7fff;
  if (format == Format::kF16) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void multiply_matrices(Format format, float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1) {
  Product product{format, c, a, {b0, b1}};
  meet_warp(combine_products, &product);
}

}  // namespace emulation
