// Loads rows of a head whose keys lie in pages into a tile of panels, by one warp, as
// loader/gather_panels.cuh does from a head in one piece. The table is asked for all rows, or
// boxes, of a tile at once, one by each lane, before the place that they go to is free: then they
// wait for memory once, and at a time when nobody waits for them.
#pragma once

#include "loader/gather_panels.cuh"

namespace lacuna {

/// A head of a tensor in pages, as cp.async and as the copy engine address it.
struct PagedHead {
  const void* data;      ///< first row of page 0
  const int* pages;      ///< of the sequence
  u32 page_units;        ///< from page to page, in 16 bytes; the runtime checks that 32 bits hold
                         ///< all places of the tensor
  u32 row_units;         ///< from row to row of a page
  int page_shift, rows;  ///< log2 of the tokens of a page; keys of the sequence
  int head;              ///< of the tensor's map

  __device__ __forceinline__ int offset_in_page(int key) const {
    return key & ((1 << page_shift) - 1);
  }
  /// -1: there is no such key.
  __device__ __forceinline__ int page_of(int key) const {
    return key < rows ? pages[key >> page_shift] : -1;
  }
};

/// Where the rows of a tile lie: row 32 * n + lane in places[n], in 16 bytes from `data`.
template <int kRows>
struct PagedPlaces {
  static constexpr u32 kNone = 0xffffffffu;
  u32 places[ceil_div(kRows, 32)];

  template <int kColumn>
  __device__ __forceinline__ void look_up(const PagedHead& from, const int* columns) {
#pragma unroll
    for (int n = 0; n < ceil_div(kRows, 32); ++n) {
      const int row = n * 32 + lane_index();
      const int key = columns[row / kColumn] * kColumn + row % kColumn;
      const int page = from.page_of(key);
      const u32 offset = static_cast<u32>(from.offset_in_page(key)) * from.row_units;
      places[n] = page < 0 ? kNone : static_cast<u32>(page) * from.page_units + offset;
    }
  }
};

/// Single rows, of places that are known.
template <class Tile, int kRows>
__device__ __forceinline__ void copy_paged_rows(u32 tile, Mbarrier full, const PagedHead& from,
                                                const PagedPlaces<kRows>& rows) {
  const int first = lane_index() / 8 * 4;
  copy_rows<Tile, kRows>(tile, full, from.data, [&](const char* data, int block, int i) {
    const int lane = (block * 16 + first + i) % 32;
    const u32 place = __shfl_sync(kAllLanes, rows.places[block / 2], lane);
    const bool exists = place != PagedPlaces<kRows>::kNone;
    return RowSource{data + static_cast<unsigned long long>(exists ? place : 0u) * 16, exists};
  });
}

/// Boxes of a tile from row kFirst on: columns, or what of a column lies in one page. At most 32.
template <class Tile, int kColumn, int kFirst, int kPageShift>
struct PagedBoxes {
  static constexpr int kTokens = smaller(kColumn, 1 << kPageShift);
  static constexpr int kCount = (Tile::kRows - kFirst) / kTokens;
  static_assert(kCount <= 32, "a lane for each");

  /// First key of a box.
  __device__ __forceinline__ static int key_of(const int* columns, int box) {
    const int row = kFirst + box * kTokens;
    return columns[row / kColumn] * kColumn + row % kColumn;
  }
  /// Of this lane's box.
  __device__ __forceinline__ static int look_up(const PagedHead& from, const int* columns) {
    return lane_index() < kCount ? from.page_of(key_of(columns, lane_index())) : -1;
  }

  /// By the whole warp. `last_page`: the map of keys that lie in the last page of the sequence.
  __device__ __forceinline__ static void load(const TensorMap& map, const TensorMap& last_page,
                                              u32 tile, Mbarrier full, const PagedHead& from,
                                              const int* columns, int page_of_lane) {
    const auto policy = l2_policy<L2Policy::kKeepLast>();
    const bool is_elected = elect_one();
    if (is_elected) full.arrive_expecting(Tile::kPanels * (Tile::kRows - kFirst) * kPanelRowBytes);
    tile += kFirst * kPanelRowBytes;
#pragma unroll 1
    for (int box = 0; box < kCount; ++box, tile += kTokens * kPanelRowBytes) {
      const int page = __shfl_sync(kAllLanes, page_of_lane, box);
      if (!is_elected) continue;
      const int key = key_of(columns, box);
      const TensorMap& own = key + kTokens > from.rows ? last_page : map;
#pragma unroll
      for (int p = 0; p < Tile::kPanels; ++p)
        tma_load(own, tile + p * Tile::kPanelBytes, full,
                 {from.offset_in_page(key), p, from.head, page}, policy);
    }
    __syncwarp();
  }
};

}  // namespace lacuna
