// Products of a warpgroup (wgmma): each warp multiplies its 16 rows of A. Operands in shared memory
// are read as the hardware reads them: by their descriptors, permuted as the address says.
#pragma once

#include <cstdint>

namespace emulation {

enum class ElementKind : std::uint8_t { kBF16, kF16, kS8, kE4m3 };

/// One instruction, 32 bytes deep, as a lane issues it.
struct WarpgroupProduct {
  ElementKind kind;
  int blocks;                     ///< of 8 columns
  void* accumulator;              ///< [blocks][4], of int for kS8, else of float
  const std::uint32_t* fragment;  ///< of A, four words; null: A lies in shared memory
  std::uint64_t a, b;             ///< descriptors
  bool has_columns;               ///< B is contiguous in its columns, not in depth
  bool adds;
};

/// Accumulators and fragments are read and written when the product lands: at once, or when it is
/// waited for.
void start_product(const WarpgroupProduct& product);

}  // namespace emulation
