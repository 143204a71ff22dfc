// How a block that compares 16-bit tokens by wgmma (select/exact/exact_sums.cuh, exact_largest.cuh)
// shares out its work, and what lies in its shared memory: read this first.
//
//   warps 0-15   four warpgroups: products of 64 rows by 128 columns, and what is made of them
//   warps 16-19  the producers (which give their registers up): keys of each step into a ring of
//                slots; each warp a quarter of the keys
//
//   queries      256, written before the first product
//   slot n       128 keys, and which step they are of
//     full[n]      4 arrivals: each warp of the producers, when what it copied is there
//     empty[n]     16 arrivals: each warp that computes, when its product is complete
//
// A warpgroup reduces a product before it issues the next. Until then the tensor cores compute
// those of the other three.
//
// Sums over keys have the queries as rows of the product, so that a query's scores lie in one lane:
// each warpgroup takes 64 queries and all keys of a step. Maxima over queries have the keys as
// rows, so that a key's scores lie in one lane: a warpgroup takes half of a step's keys and 128
// queries. A row is then reduced by one instruction for each score, and across its four lanes once.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "arch/copy/mbarrier.cuh"
#include "arch/copy/tma.cuh"
#include "arch/multiply/wgmma.cuh"
#include "arch/warpgroup.cuh"
#include "base/kinds.cuh"
#include "base/mask_pair.cuh"
#include "loader/token_rows.cuh"
#include "pipeline/ring_position.cuh"
#include "select/four_consumers.cuh"
#include "select/keep/keep_row.cuh"
#include "shared/estimate_block.cuh"
#include "tile/panel_tile.cuh"

namespace lacuna {

template <class Config>
struct ExactShape : FourConsumers {
  static constexpr int kThreads = kWarps * 32;  ///< that compute
  static constexpr int kRows = kTokenPairRows;  ///< queries
  static constexpr int kStages = kExactStages;
  static constexpr int kStepKeys = kExactStepKeys;
  static constexpr int kColumns = kExactColumns;  ///< of a product
  static constexpr int kBlocks = kColumns / 8;
  using Products = float[kBlocks][4];

  using QueryPanels = PanelTile<kRows, Config::kHeadDim>;
  using KeyPanels = PanelTile<kStepKeys, Config::kHeadDim>;
  static constexpr int kKeyBytes = KeyPanels::kBytes;   ///< of a slot
  static constexpr int kChunks = Config::kHeadDim / 8;  ///< of 16 bytes, of a token

  /// What the rows of a product's columns are reduced by, as a lane of a quad reads it: from quad
  /// to quad four banks on.
  static constexpr int kQuadColumns = kColumns / 4, kQuadStride = kQuadColumns + 4;
  struct alignas(16) Control {
    unsigned long long full[kStages], empty[kStages];
    alignas(16) float offset[kRows / kColumns][4][kQuadStride];
    int steps[kStages];                   ///< less than 0: there are no more
    int visible[kRows / kWarpgroupRows];  ///< tiles of the row of each query tile
  };

  static constexpr int kQueryOffset = kStages * kKeyBytes;
  static constexpr int kControlOffset = kQueryOffset + QueryPanels::kBytes;
  static_assert(kControlOffset == exact_tile_bytes(Config::kHeadDim));
  static_assert(kControlOffset + static_cast<int>(sizeof(Control)) <= Config::kSmemBytes);
};

template <class Config>
using ExactSmem = FourConsumersSmem<ExactShape<Config>>;

/// By all threads of the block.
template <class Shape>
__device__ __forceinline__ void prepare_exact(const FourConsumersSmem<Shape>& smem) {
  const int n = thread_index();
  if (n < Shape::kStages) smem.init_slot(n);
  if (n < Shape::kRows / kWarpgroupRows) smem.control().visible[n] = 0;
  __syncthreads();
}

/// Which pairs count: those of a sum, which may be over `reference` alone, or all that are visible.
template <class Config, class Hooks, class Args, bool kIsReference>
struct ExactPairs {
  const Args& args;

  __device__ __forceinline__ bool any(const KeepRow& row, int k0, int k1) const {
    if (!sees_keys<Config, Hooks>(args, row, k0, k1)) return false;
    if constexpr (!kIsReference) return true;
    return Hooks::reference_possible(args, row.q0, row.q1, k0, k1);
  }
  __device__ __forceinline__ bool all(const KeepRow& row, int k0, int k1) const {
    bool full = true;
    if constexpr (Config::kHasMask)
      full = Hooks::tile_full(args, row.q0, row.q1, k0, k1, row.h, row.b);
    if constexpr (kIsReference) full = full && Hooks::reference_full(args, row.q0, row.q1, k0, k1);
    return full;
  }
  /// `mask_parts`: what prepare_mask has made for the row.
  template <class MaskParts>
  __device__ __forceinline__ bool one(const MaskParts& mask_parts, const KeepRow& row, int q,
                                      int k) const {
    bool counts = true;
    if constexpr (Config::kHasMask) counts = sees<Hooks>(args, mask_parts, q, k, row.h, row.b);
    if constexpr (kIsReference) counts = counts && Hooks::reference(args, q, k);
    return counts;
  }
};

/// A warp that computes: where it is, and what it does around its products.
template <class Config, class Args>
struct ExactWarp {
  using Shape = ExactShape<Config>;
  using Smem = ExactSmem<Config>;
  using Ring = RingPosition<Shape::kStages>;
  using Products = typename Shape::Products;

  __device__ __forceinline__ ExactWarp(const Args& launch, const Smem& shared,
                                       const KeepRow& queries)
      : args(launch), smem(shared), block(queries), number(warp_index()) {}

  /// The block's queries, a sixteenth by each warp; those past the last are zeros. Ends with a
  /// barrier of all warps.
  __device__ __forceinline__ void load_queries() const {
    using Element = typename Config::Element;
    constexpr int kPassRows = 32 / Shape::kChunks;
    const int lane_row = lane_index() / Shape::kChunks, chunk = lane_index() % Shape::kChunks;
    const TensorArg& q = args.attend.q;
    const Element* const head = element_of<Element>(q, block.b, block.h, 0, chunk * 8);
#pragma unroll
    for (int pass = 0; pass < kWarpRows; pass += kPassRows) {
      const int row = number * kWarpRows + pass + lane_row;
      const bool exists = block.q0 + row <= block.q1;
      const long long token = exists ? block.q0 + row : 0;
      cp_async_16(smem.queries() + Shape::QueryPanels::offset(row, chunk),
                  head + token * q.stride_n, exists);
    }
    cp_async_commit();
    cp_async_wait<0>();
    fence_proxy_async();
    sync();
  }

  __device__ __forceinline__ static void sync() { NamedBarrier{1, Shape::kThreads}.sync(); }

  /// The step of the slot, less than 0 if there are no more.
  __device__ __forceinline__ int wait(const Ring& at) const {
    smem.await(at);
    return smem.control().steps[at.slot()];
  }
  __device__ __forceinline__ void release(const Ring& at) const { smem.release(at); }

  /// One after the other: what the registers held is over.
  template <class Rows, class Columns>
  __device__ __forceinline__ static void multiply(Products& products, const OperandDescriptor& rows,
                                                  const OperandDescriptor& columns) {
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < Config::kHeadDim / 16; ++step) {
      wgmma_from_smem<typename Config::Element>(products, rows.at(Rows::along_step(step)),
                                                columns.at(Columns::along_step(step)), step != 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    fence_accumulator(products);
  }

  const Args& args;
  const Smem smem;
  const KeepRow& block;  ///< the queries of the block
  const int number;
};

}  // namespace lacuna
