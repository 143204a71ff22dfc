#include <cstring>

#include "runtime/cpu/ops/estimate.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lacuna::predict {
namespace {

/// Products of some rows with one panel: dots[r * stride + column].
using DotRows = void (*)(const float* rows, int length, const float* panel, float* dots,
                         std::size_t stride);

/// `many` takes `rows` rows, as many as the registers hold sums for.
struct DotKernel {
  int rows;
  DotRows many, one;
};

/// One number for each column of a panel. A vector type keeps the sums in registers, which arrays
/// of floats do not reliably achieve.
using Lanes = float __attribute__((vector_size(4 * kPanelColumns)));

template <int kRows>
void dot_rows(const float* rows, int length, const float* panel, float* dots, std::size_t stride) {
  Lanes sums[kRows] = {};
  for (int x = 0; x < length; ++x) {
    Lanes column;
    std::memcpy(&column, panel + std::ptrdiff_t{x} * kPanelColumns, sizeof column);
    for (int r = 0; r < kRows; ++r) sums[r] += rows[std::ptrdiff_t{r} * length + x] * column;
  }
  for (std::size_t r = 0; r < kRows; ++r) std::memcpy(dots + r * stride, &sums[r], sizeof sums[r]);
}

#if defined(__x86_64__)
/// The same where a panel's columns are one register: three times as fast.
template <int kRows>
[[gnu::target("avx2,fma")]] void dot_rows_fma(const float* rows, int length, const float* panel,
                                              float* dots, std::size_t stride) {
  __m256 sums[kRows] = {};
  for (int x = 0; x < length; ++x) {
    const __m256 column = _mm256_loadu_ps(panel + std::ptrdiff_t{x} * kPanelColumns);
    for (int r = 0; r < kRows; ++r) {
      const __m256 element = _mm256_broadcast_ss(rows + std::ptrdiff_t{r} * length + x);
      sums[r] = _mm256_fmadd_ps(element, column, sums[r]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) _mm256_storeu_ps(dots + r * stride, sums[r]);
}
#endif

DotKernel choose_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {8, dot_rows_fma<8>, dot_rows_fma<1>};
  }
#endif
  return {4, dot_rows<4>, dot_rows<1>};
}

}  // namespace

ColumnPanels::ColumnPanels(int column_count, int column_length)
    : columns(column_count), length(column_length) {
  data.resize(static_cast<std::size_t>(panels()) * static_cast<std::size_t>(length) *
              kPanelColumns);
}

void ColumnPanels::set_column(int column, const float* values) {
  float* to = data.data() + std::ptrdiff_t{column / kPanelColumns} * length * kPanelColumns +
              column % kPanelColumns;
  for (int x = 0; x < length; ++x) to[std::ptrdiff_t{x} * kPanelColumns] = values[x];
}

void dot_products(const float* rows, int row_count, const ColumnPanels& columns, int first, int end,
                  float* dots, std::size_t stride) {
  const DotKernel kernel = choose_kernel();
  const int length = columns.length;
  for (int c = first; c < end; c += kPanelColumns) {
    const float* panel = columns.data.data() + std::ptrdiff_t{c} * length;
    for (int r = 0; r < row_count;) {
      const bool many = r + kernel.rows <= row_count;
      (many ? kernel.many : kernel.one)(rows + std::ptrdiff_t{r} * length, length, panel,
                                        dots + static_cast<std::size_t>(r) * stride + (c - first),
                                        stride);
      r += many ? kernel.rows : 1;
    }
  }
}

}  // namespace lacuna::predict
