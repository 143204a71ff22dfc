// End of an item of a batch of sequences in the wgmma family, whose rows may be those of several
// heads (pipeline/sequence_tile.cuh). A work tile of one item is written as it is. The items of a
// split one leave O and LSE of their share in the workspace, in f32. For each 16 rows a counter
// tells which item's warp comes last; that warp merges the shares of these rows, in the order of
// the shares, so that results do not depend on which warp it is.
#pragma once

#include "arch/atomic.cuh"
#include "attend/combine.cuh"
#include "attend/epilogue.cuh"
#include "attend/wgmma/gates/gate_votes.cuh"
#include "attend/wgmma/layout/consumer_rows.cuh"
#include "attend/wgmma/layout/wgmma_shape.cuh"

namespace lacuna {

/// A warp of a consumer warpgroup.
struct PackedWarp {
  int warpgroup, warp;

  /// The warpgroup's place among those of its work tile.
  template <class Config>
  __device__ __forceinline__ int place() const {
    return WgmmaShape<Config>::kOwnRows ? 0 : warpgroup;
  }
};

template <class Config, class Args>
__device__ __forceinline__ typename Config::Element* output_row(const Args& args,
                                                                const SequenceTile& row, int q,
                                                                int h) {
  using Element = typename Config::Element;
  const TensorArg& o = args.attend.o;
  auto* const data = static_cast<Element*>(o.data) + h * o.stride_h;
  return data + first_result<Config, Element>(args, row.b, row.q_begin, o.stride_b, o.stride_n) +
         q * o.stride_n;
}

/// Items of a row's work tile, in a register that the compiler knows to be the same in all lanes:
/// no branch on it makes the warp divergent.
template <class Config>
__device__ __forceinline__ int items_of(const SequenceTile& row) {
  if constexpr (Config::kSplitItems == 1) return 1;
  return static_cast<int>(uniform_over_warp(static_cast<u32>(row.shares)));
}

/// Zeros to O of those of the warp's 16 rows that are of a query, which has seen no key.
template <class Config, class Args>
__device__ __forceinline__ void clear_packed_rows(const Args& args, const SequenceTile& row,
                                                  PackedWarp at) {
  constexpr int kChunks = WgmmaShape<Config>::kHeadDimV / 8;
#pragma unroll 1
  for (int n = lane_index(); n < kWarpRows * kChunks; n += 32) {
    const PackedRow one =
        packed_row(args, row, at.place<Config>(), at.warp * kWarpRows + n / kChunks);
    if (one.exists)
      *reinterpret_cast<uint4*>(output_row<Config>(args, row, one.q, one.h) + n % kChunks * 8) =
          make_uint4(0, 0, 0, 0);
  }
  __syncwarp();
}

/// O of a work tile's queries from `staging`, where the warpgroup's warps have written it; by all
/// of them. The first warp's elected thread issues; it has to wait before `staging` is overwritten.
template <class Config, class Args>
__device__ __forceinline__ void store_packed_output(const Args& args, u32 staging, PackedWarp at,
                                                    const SequenceTile& row) {
  using Tile = typename WgmmaShape<Config>::OutputTile;
  fence_proxy_async();
  warpgroup_barrier(at.warpgroup).sync();
  if (uniform_over_warp(static_cast<u32>(at.warp)) == 0 && elect_one()) {
    const TensorMap& map = maps_of_sequence(args, row.b)[kSequenceOutput];
    const int first = row.q0 + at.place<Config>() * args.batch_schedule.group_queries;
#pragma unroll
    for (int p = 0; p < Tile::kPanels; ++p)
      tma_store(map, staging + p * Tile::kPanelBytes,
                panel_origin<Tile::kElements>(first, p, row.h, 0));
    tma_store_commit();
  }
}

/// The warp's rows of a lane's accumulators, divided, to the workspace.
template <class Config, class Args, class Rows, int kColumnBlocks>
__device__ __forceinline__ void write_packed_partials(const Args& args, const SequenceTile& row,
                                                      const LaneRowsOf<Config>& lane,
                                                      const float (&output)[kColumnBlocks][4],
                                                      const Rows& rows, const float (&sum)[2],
                                                      float to_log2) {
  constexpr int kHeadDim = kColumnBlocks * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (!lane.exists(r, row.n_q)) continue;
    const long long index = partial_index<Config>(args, row, row.share, lane.q(r), lane.h(r));
    float* target = args.batch_schedule.partial_o + index * kHeadDim + lane_index() % 4 * 2;
    const float inverse = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
#pragma unroll
    for (int n = 0; n < kColumnBlocks; ++n)
      *reinterpret_cast<float2*>(target + n * 8) =
          make_float2(output[n][2 * r] * inverse, output[n][2 * r + 1] * inverse);
    if (lane_index() % 4 == 0)
      args.batch_schedule.partial_lse[index] = row_lse(rows, r, sum[r], to_log2, 0.0f);
  }
}

/// What the shares of a row are weighed by.
struct SharesOfRow {
  float heaviest_lse;  ///< LSE of the heaviest share; 0: no share has seen a key
  float sum;           ///< of weights relative to it

  __device__ __forceinline__ float weight(float lse) const {
    return exp2_approx((lse - heaviest_lse) * kLog2E);
  }
  __device__ __forceinline__ float lse() const {
    return sum == 0.0f ? -kInfinity : heaviest_lse + log2_approx(sum) * kLn2;
  }
};

/// By a whole warp; LSEs of the shares lie `stride` apart.
__device__ __forceinline__ SharesOfRow weigh_shares(const float* lse, long long stride,
                                                    int shares) {
  float largest = -kInfinity, sum = 0.0f;
  for (int s = lane_index(); s < shares; s += 32) largest = fmaxf(largest, lse[s * stride]);
  largest = warp_reduce(largest, [](float a, float b) { return fmaxf(a, b); });
  SharesOfRow row{largest == -kInfinity ? 0.0f : largest, 0.0f};
  for (int s = lane_index(); s < shares; s += 32) sum += row.weight(lse[s * stride]);
  row.sum = warp_reduce(sum, [](float a, float b) { return a + b; });
  return row;
}

/// O and LSE of one row from its shares; by a whole warp. A lane has pairs of neighbouring
/// elements, each 64 elements behind the one before; where a row is not a multiple of 64 elements,
/// some lanes have one pair less.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void merge_row(const Args& args, const SequenceTile& row, int q, int h) {
  using Element = typename Config::Element;
  constexpr int kElements = WgmmaShape<Config>::kHeadDimV, kPairs = ceil_div(kElements, 64);
  const auto has_pair = [](int n) {
    return kElements % 64 == 0 || n * 64 + lane_index() * 2 < kElements;
  };
  const SequenceSchedule& schedule = args.batch_schedule;
  const long long first = partial_index<Config>(args, row, 0, q, h);
  const long long stride =
      static_cast<long long>(tile_heads<Config>(args)) * schedule.partial_queries;
  const float* lse = schedule.partial_lse + first;
  const int count = items_of<Config>(row);
  const SharesOfRow shares = weigh_shares(lse, stride, count);
  const float* partial = schedule.partial_o + first * kElements + lane_index() * 2;
  float2 o[kPairs] = {};
#pragma unroll 8
  for (int s = 0; s < count; ++s) {
    const float weight = shares.weight(lse[s * stride]);
#pragma unroll
    for (int n = 0; n < kPairs; ++n) {
      if (!has_pair(n)) continue;
      const float2 pair =
          *reinterpret_cast<const float2*>(partial + s * stride * kElements + n * 64);
      o[n].x = fmaf(weight, pair.x, o[n].x);
      o[n].y = fmaf(weight, pair.y, o[n].y);
    }
  }
  const CombinedRow combined{row.b, h, q, 0};
  const float sum = combined_sum<Config, Hooks>(args, combined, shares);
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  Element* target = output_row<Config>(args, row, q, h) + lane_index() * 2;
#pragma unroll
  for (int n = 0; n < kPairs; ++n) {
    if (has_pair(n))
      *reinterpret_cast<u32*>(target + n * 64) = pack<Element>(o[n].x * inverse, o[n].y * inverse);
  }
  if (!Config::kWritesLse || args.attend.lse.data == nullptr || lane_index() != 0) return;
  const LseArg& to = args.attend.lse;
  to.data[h * to.stride_h + first_result<Config, float>(args, row.b, row.q_begin, to.stride_b, 1) +
          q] = combined_lse<Config, Hooks>(args, combined, shares);
}

/// Behind write_packed_partials, by the whole warp.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void merge_if_last(const Args& args, const SequenceTile& row,
                                              PackedWarp at) {
  constexpr int kWarps = 4 * Config::kWarpgroups;
  __syncwarp();
  u32 before = 0;
  if (lane_index() == 0)
    before = take_number_in_order(args.batch_schedule.arrivals + row.partial * kWarps +
                                  at.warpgroup * 4 + at.warp);
  before = __shfl_sync(kAllLanes, before, 0);
  if (before + 1 == static_cast<u32>(items_of<Config>(row))) {
    __syncwarp();
    for (int n = 0; n < kWarpRows; ++n) {
      const PackedRow one = packed_row(args, row, at.place<Config>(), at.warp * kWarpRows + n);
      if (uniform_over_warp(one.exists) != 0) merge_row<Config, Hooks>(args, row, one.q, one.h);
    }
  }
  __syncwarp();
}

}  // namespace lacuna
