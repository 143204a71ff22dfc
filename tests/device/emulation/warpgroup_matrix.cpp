#include "tests/device/emulation/warpgroup_matrix.hpp"

#include <cstring>
#include <vector>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/box_map.hpp"
#include "tests/device/emulation/byte_matrix.hpp"
#include "tests/device/emulation/matrix.hpp"

namespace emulation {
namespace {

constexpr int kRows = 16, kColumns = 8, kDepthBytes = 32, kMostDepth = kDepthBytes;
constexpr int kChunkBytes = 16;

int element_bytes(ElementKind kind) {
  return kind == ElementKind::kBF16 || kind == ElementKind::kF16 ? 2 : 1;
}

/// As floats: products of bytes and their sums are exact in double.
double value_of(ElementKind kind, const unsigned char* element) {
  if (kind == ElementKind::kS8) return static_cast<std::int8_t>(*element);
  if (kind == ElementKind::kE4m3) return static_cast<double>(e4m3_to_float(*element));
  std::uint16_t bits;
  std::memcpy(&bits, element, sizeof(bits));
  return static_cast<double>(
      to_float(kind == ElementKind::kF16 ? Format::kF16 : Format::kBF16, bits));
}

/// Of a descriptor: where an operand begins, and the bytes between its 8 x 8 blocks.
struct Operand {
  std::uint32_t start, leading, stride;
  int line_bytes;

  explicit Operand(std::uint64_t bits)
      : start(static_cast<std::uint32_t>(bits & 0x3fff) << 4),
        leading(static_cast<std::uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<std::uint32_t>(bits >> 32 & 0x3fff) << 4),
        line_bytes(bits >> 62 == 1 ? 128 : 64) {}

  /// Rows contiguous in depth.
  std::uint32_t in_row(int row, int depth_byte) const {
    return start + static_cast<std::uint32_t>(row / 8) * stride +
           static_cast<std::uint32_t>(row % 8) * (stride / 8) +
           static_cast<std::uint32_t>(depth_byte);
  }
  /// Contiguous in columns: 64 of them, of 2 bytes, to a line.
  std::uint32_t in_column(int column, int depth) const {
    return start + static_cast<std::uint32_t>(column / 64) * leading +
           static_cast<std::uint32_t>(depth / 8) * stride +
           static_cast<std::uint32_t>(depth % 8 * 128 + column % 64 * 2);
  }
  /// The elements of the 16 bytes at an address: a permutation keeps them together.
  int read(ElementKind kind, std::uint32_t address, double* values) const {
    const unsigned char* const chunk =
        read_shared(swizzled(address, line_bytes), kChunkBytes, Actor::kWarp);
    const int bytes = element_bytes(kind), elements = kChunkBytes / bytes;
    for (int n = 0; n < elements; ++n) values[n] = value_of(kind, chunk + n * bytes);
    return elements;
  }
};

const WarpgroupProduct& product_of(Operands lanes, int lane) {
  return *static_cast<const WarpgroupProduct*>(lanes[static_cast<std::size_t>(lane)]);
}

/// Lane 4 g + t has of rows g and g + 8 the t-th 4 bytes, then those 16 bytes on.
void read_fragments(Operands lanes, double (&a)[kRows][kMostDepth]) {
  const ElementKind kind = product_of(lanes, 0).kind;
  const int bytes = element_bytes(kind);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const WarpgroupProduct& product = product_of(lanes, lane);
    for (int part = 0; part < 4; ++part) {
      unsigned char word[4];
      std::memcpy(word, product.fragment + part, sizeof(word));
      for (int byte = 0; byte < 4; byte += bytes)
        a[lane / 4 + part % 2 * 8][(lane % 4 * 4 + part / 2 * 16 + byte) / bytes] =
            value_of(kind, word + byte);
    }
  }
}

/// A row of either operand whose rows are contiguous in depth.
void read_row(const Operand& operand, ElementKind kind, int row, double (&values)[kMostDepth]) {
  int depth = 0;
  for (int byte = 0; byte < kDepthBytes; byte += kChunkBytes)
    depth += operand.read(kind, operand.in_row(row, byte), values + depth);
}

void read_rows(const WarpgroupProduct& product, double (&a)[kRows][kMostDepth]) {
  const int first = thread_index() / kWarpLanes % 4 * kRows;
  for (int row = 0; row < kRows; ++row)
    read_row(Operand(product.a), product.kind, first + row, a[row]);
}

/// Eight columns of B.
void read_columns(const WarpgroupProduct& product, int first, double (&b)[kColumns][kMostDepth]) {
  const Operand operand(product.b);
  if (!product.has_columns) {
    for (int n = 0; n < kColumns; ++n) read_row(operand, product.kind, first + n, b[n]);
    return;
  }
  for (int k = 0; k < kDepthBytes / element_bytes(product.kind); ++k) {
    double of_columns[kChunkBytes];
    operand.read(product.kind, operand.in_column(first, k), of_columns);
    for (int n = 0; n < kColumns; ++n) b[n][k] = of_columns[n];
  }
}

/// To all lanes, 8 columns to a block. Each sum is taken in the order of depth, those of all rows
/// side by side: one alone waits for its last addition.
template <class T>
void add_products(Operands lanes, const double (&a)[kRows][kMostDepth]) {
  const WarpgroupProduct& any = product_of(lanes, 0);
  const int depth = kDepthBytes / element_bytes(any.kind);
  double by_depth[kMostDepth][kRows];
  for (int k = 0; k < depth; ++k)
    for (int row = 0; row < kRows; ++row) by_depth[k][row] = a[row][k];
  for (int block = 0; block < any.blocks; ++block) {
    double b[kColumns][kMostDepth];
    read_columns(any, block * kColumns, b);
    for (int column = 0; column < kColumns; ++column) {
      double sums[kRows] = {};
      for (int k = 0; k < depth; ++k)
        for (int row = 0; row < kRows; ++row) sums[row] += by_depth[k][row] * b[column][k];
      for (int row = 0; row < kRows; ++row) {
        const WarpgroupProduct& product = product_of(lanes, row % 8 * 4 + column / 2);
        T& target = static_cast<T*>(product.accumulator)[block * 4 + row / 8 * 2 + column % 2];
        const T sum = static_cast<T>(sums[row]);
        target = product.adds ? static_cast<T>(target + sum) : sum;
      }
    }
  }
}

void combine(Operands lanes) {
  const WarpgroupProduct& any = product_of(lanes, 0);
  for (int lane = 1; lane < kWarpLanes; ++lane) {
    const WarpgroupProduct& other = product_of(lanes, lane);
    if (other.a != any.a || other.b != any.b || other.adds != any.adds)
      throw Fault("the lanes of a warp issue different products");
  }
  double a[kRows][kMostDepth];
  if (any.fragment != nullptr) {
    read_fragments(lanes, a);
  } else {
    read_rows(any, a);
  }
  if (any.kind == ElementKind::kS8) {
    add_products<int>(lanes, a);
  } else {
    add_products<float>(lanes, a);
  }
}

}  // namespace

void start_product(const WarpgroupProduct& product) {
  start_work(Engine::kProducts, [copy = product]() mutable { meet_warp(combine, &copy); });
}

}  // namespace emulation
