// A tile of 16-bit rows in shared memory as the copy engine lays it down and wgmma reads it: panels
// of 64 elements (128 bytes), one behind the other, each all rows high.
//
//   panel 0: row 0 [8 chunks of 16 bytes], row 1, ...    chunk c of row r lies at c ^ (r % 8)
//   panel 1: ...
//
// The permutation follows from the address alone, so panels begin at multiples of 1024 bytes. Rows
// that are no whole panels end within the last one; zeros are behind.
#pragma once

#include "arch/multiply/operand_descriptor.cuh"
#include "base/ints.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

inline constexpr int kPanelRowBytes = 128;
inline constexpr int kSwizzleRows = 8;  ///< after which the permutation repeats

template <int kRows_, int kElements_>
struct PanelTile {
  static constexpr int kRows = kRows_, kElements = kElements_;
  static constexpr int kPanels = ceil_div(kElements, kPanelElements);
  static constexpr int kPanelBytes = kRows * kPanelRowBytes;
  static constexpr int kBytes = kPanels * kPanelBytes;
  static_assert(kElements % 16 == 0 && kRows % 8 == 0);

  /// Rows contiguous in the product's depth: queries or keys. Eight rows are 1024 bytes; within the
  /// swizzled line there is no leading step.
  __device__ __forceinline__ static OperandDescriptor along_rows(u32 tile) {
    return OperandDescriptor(tile, 16, 1024);
  }
  /// To the step-th 16 elements of all rows.
  __host__ __device__ static constexpr int along_step(int step) {
    return step / 4 * kPanelBytes + step % 4 * 32;
  }

  /// Rows across the product's depth: values. 64 columns further is the next panel, eight rows
  /// further 1024 bytes.
  __device__ __forceinline__ static OperandDescriptor across_rows(u32 tile) {
    return OperandDescriptor(tile, kPanelBytes, 1024);
  }
  /// To the step-th 16 rows of all elements.
  __host__ __device__ static constexpr int across_step(int step) {
    return step * 16 * kPanelRowBytes;
  }

  /// Byte offset of a chunk of 16 bytes in a row, counted through all panels.
  __device__ __forceinline__ static u32 offset(int row, int chunk) {
    return static_cast<u32>(chunk / 8 * kPanelBytes + row * kPanelRowBytes +
                            (((chunk ^ row) % 8) << 4));
  }
};

}  // namespace lacuna
