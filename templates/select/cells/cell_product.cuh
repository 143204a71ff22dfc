// Products of a stage of predict_cells: its rows with its columns, some elements deep, added to
// what the warp has of the chunk so far. Two kinds with one interface:
//
//   issue(sums, rows, columns, part)    behind the barrier of the stage
//   (copies of a later stage)
//   finish(sums, rows, columns, part)   afterwards the sums are there, and the stage is free
//
// By mma.sync all is done in finish. By wgmma (sm_90a) the products are under way while copies are
// issued; a warp then has 16 rows of its warpgroup's 64.
#pragma once

#include "arch/multiply/wgmma.cuh"
#include "arch/warpgroup.cuh"
#include "select/cells/cell_shape.cuh"
#include "select/dims.cuh"
#include "select/tokens/token_product.cuh"
#include "tile/panel_tile.cuh"

namespace lacuna {

template <class Config>
struct MmaCellProduct {
  using Shape = CellShape<Config>;
  using Sums = float[Shape::kSets][Shape::kBlocks][4];

  __device__ __forceinline__ static void issue(Sums&, u32, u32, int) {}

  /// `rows` and `columns` are those of the warp; `part` is the stage's number in its chunk.
  __device__ __forceinline__ static void finish(Sums& sums, u32 rows, u32 columns, int part) {
    add_products_of_sets<typename Config::Element, typename Shape::template QueryTile<16>,
                         typename Shape::template KeyTile<16>>(sums, rows, columns, dims_of(part));
  }

 private:
  /// Which of the elements of a part, 16 at a time, are compared.
  __device__ __forceinline__ static u32 dims_of(int part) {
    if constexpr (compared_dims<Config>() == ~0u) return ~0u;
    return compared_dims<Config>() >> part % Shape::kSlices * (Shape::kDepth / 16);
  }
};

template <class Config>
struct WgmmaCellProduct {
  using Shape = CellShape<Config>;
  using Sums = float[Shape::kSets][Shape::kBlocks][4];
  using Queries = PanelTile<Shape::kRows, Shape::kDepth>;
  using Keys = PanelTile<Shape::kColumns, Shape::kDepth>;
  static_assert(Shape::kSets == 1 && Shape::kSplits == 1 && Shape::kDepth == kPanelElements &&
                compared_dims<Config>() == ~0u);

  /// `rows` are those of the warp's warpgroup, the same address in all its lanes.
  __device__ __forceinline__ static void issue(Sums& sums, u32 rows, u32 columns, int part) {
    const OperandDescriptor queries = Queries::along_rows(rows), keys = Keys::along_rows(columns);
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < Shape::kDepth / 16; ++step)
      wgmma_from_smem<typename Config::Element>(sums[0], queries.at(Queries::along_step(step)),
                                                keys.at(Keys::along_step(step)),
                                                part != 0 || step != 0);
    wgmma_commit();
  }

  __device__ __forceinline__ static void finish(Sums& sums, u32, u32, int) {
    wgmma_wait<0>();
    fence_accumulator(sums[0]);
  }
};

// What Config::Product names: a kind of product, which does not depend on Config itself.
struct CellsByMma {
  template <class Config>
  using Of = MmaCellProduct<Config>;
};
struct CellsByWgmma {
  template <class Config>
  using Of = WgmmaCellProduct<Config>;
};

}  // namespace lacuna
