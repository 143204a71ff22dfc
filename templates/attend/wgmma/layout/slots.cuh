// How operands of a step lie in the slots of the wgmma family, by format: the tile that wgmma reads
// and the boxes that bring it, whose maps the host makes alike (compiler/emit/bind_arguments.cpp).
//
//   16-bit rows     panels of 64 elements, 128 bytes; a box is one panel of a tile of the list
//   int8 rows       64 or 128 bytes, a whole row of the head; a box is a tile
//   e4m3 columns    rows of channels, 64 keys in 64 bytes; a box is all channels of 64 keys
//   e4m3 rows       panels of 128 or 64 bytes; a box is one panel of a tile. wgmma does not read
//                   them: 16-bit rows are made of them (producers/code_converter.cuh)
#pragma once

#include "arch/copy/tma.cuh"
#include "tile/byte_panel.cuh"
#include "tile/panel_tile.cuh"

namespace lacuna {

/// Where a box of 16-bit rows of kElements begins. Of whole panels these are a dimension of the
/// map; of others the row is, so that the copy engine knows where it ends.
template <int kElements>
__device__ __forceinline__ BoxOrigin panel_origin(int token, int panel, int head, int batch) {
  if constexpr (kElements % kPanelElements == 0) {
    return {token, panel, head, batch};
  } else {
    return {token, 0, head, batch, panel * kPanelElements};
  }
}

/// Rows of 16-bit elements, for slots of kRows that are loaded kBoxRows at a time.
template <int kRows, int kBoxRows, int kHeadDim>
struct PanelSlot {
  using Tile = PanelTile<kRows, kHeadDim>;
  static constexpr bool kIsPrepared = false;  ///< made by a kernel before, in the workspace
  static constexpr int kBytes = Tile::kBytes;
  static constexpr int kBoxes = Tile::kPanels;      ///< of kBoxRows rows
  static constexpr int kRowBytes = kPanelRowBytes;  ///< of a box

  /// Of the box-th box of the n-th kBoxRows rows, from the slot's beginning.
  __device__ __forceinline__ static u32 offset(int n, int box) {
    return static_cast<u32>(box * Tile::kPanelBytes + n * kBoxRows * kPanelRowBytes);
  }
  __device__ __forceinline__ static BoxOrigin origin(int token, int box, int head, int batch) {
    return panel_origin<kHeadDim>(token, box, head, batch);
  }
};

/// Rows of e4m3 codes. Chunks are permuted as in BytePanel (tile/byte_panel.cuh).
template <int kRows_, int kBoxRows, int kHeadDim>
struct CodeSlot {
  static constexpr bool kIsPrepared = false;
  static constexpr int kRows = kRows_;
  static constexpr int kRowBytes = code_panel(kHeadDim);  ///< of a panel
  static constexpr int kBytes = kRows * kHeadDim;
  static constexpr int kBoxes = kHeadDim / kRowBytes;
  static constexpr int kChunks = kRowBytes / 16;  ///< of a row of a panel
  static_assert(kHeadDim % kRowBytes == 0 && kRows * kRowBytes % 1024 == 0);

  __device__ __forceinline__ static u32 offset(int n, int box) {
    return static_cast<u32>((box * kRows + n * kBoxRows) * kRowBytes);
  }
  __device__ __forceinline__ static BoxOrigin origin(int token, int box, int head, int batch) {
    return {token, box, head, batch};
  }
  /// Byte offset of a chunk of 16 codes in a row, counted through all panels.
  __device__ __forceinline__ static u32 chunk_offset(int row, int chunk) {
    const int phase = kRowBytes == 128 ? row : row / 2;
    return static_cast<u32>((chunk / kChunks * kRows + row) * kRowBytes +
                            (((chunk ^ phase) % kChunks) << 4));
  }
};

/// Rows of int8.
template <int kRows, int kBoxRows, int kHeadDim>
struct ByteSlot {
  using Tile = BytePanel<kRows, kHeadDim>;
  static constexpr bool kIsPrepared = true;
  static constexpr int kBytes = Tile::kBytes;
  static constexpr int kBoxes = 1;
  static constexpr int kRowBytes = kHeadDim;

  __device__ __forceinline__ static u32 offset(int n, int) {
    return static_cast<u32>(n * kBoxRows * kHeadDim);
  }
  __device__ __forceinline__ static BoxOrigin origin(int token, int, int head, int batch) {
    return {token, 0, head, batch};
  }
};

/// Values transposed, kTokens of a slot. Blocks of 64 tokens are the third dimension of the map, so
/// that one behind the last token reads as zeros.
template <int kTokens, int kBoxTokens, int kHeadDim>
struct ColumnSlot {
  static constexpr int kBlockTokens = kColumnPanelTokens;
  using Tile = BytePanel<kHeadDim, kBlockTokens>;  ///< of one block
  static constexpr bool kIsPrepared = true;
  static constexpr int kBytes = kTokens / kBlockTokens * Tile::kBytes;
  static constexpr int kBoxes = kBoxTokens / kBlockTokens;
  static constexpr int kRowBytes = kHeadDim;  ///< of a token
  static_assert(kBoxTokens % kBlockTokens == 0);

  __device__ __forceinline__ static u32 offset(int n, int box) {
    return static_cast<u32>((n * kBoxes + box) * Tile::kBytes);
  }
  __device__ __forceinline__ static BoxOrigin origin(int token, int box, int head, int batch) {
    return {0, token / kBlockTokens + box, head, batch};
  }
};

}  // namespace lacuna
