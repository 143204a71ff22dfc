// All dot products of a few rows with many columns, in f32: the arithmetic of an estimate.
#pragma once

#include <cstddef>
#include <vector>

namespace lacuna::predict {

inline constexpr int kPanelColumns = 8;

/// Columns in panels of eight: [panel][element][column of the panel]. Ragged ends hold 0.
struct ColumnPanels {
  int columns = 0, length = 0;
  std::vector<float> data;

  ColumnPanels() = default;
  ColumnPanels(int columns, int length);
  int panels() const { return (columns + kPanelColumns - 1) / kPanelColumns; }
  void set_column(int column, const float* values);
};

/// dots[r * stride + c - first] = rows[r * length ..] . column c, for whole panels that cover
/// [first, end); `first` is a multiple of kPanelColumns. Writes ceil8(end - first) of each row.
/// Sums of products of integers are exact as long as they stay below 2^24.
void dot_products(const float* rows, int row_count, const ColumnPanels& columns, int first, int end,
                  float* dots, std::size_t stride);

}  // namespace lacuna::predict
