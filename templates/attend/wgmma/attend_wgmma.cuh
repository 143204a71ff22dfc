// `attend`, wgmma family (sm_90a): TMA, wgmma, warp-specialised. See attend/wgmma/wgmma_shape.cuh
// for the roles and their barriers.
#pragma once

#include "attend/wgmma/consumer.cuh"
#include "attend/wgmma/gather_producer.cuh"
#include "attend/wgmma/int8_consumer.cuh"
#include "attend/wgmma/producer.cuh"
#include "attend/wgmma/tile_gate_consumer.cuh"
#include "attend/wgmma/tile_gate_producer.cuh"
#include "attend/wgmma/two_list_producer.cuh"

namespace lacuna {

/// Rows of no query, which no load fills, begin as zeros. What takes their place later are results
/// of such rows.
template <class Config, class Args>
__device__ __forceinline__ void clear_unused_rows(const Args& args, const WgmmaSmem<Config>& smem) {
  using Shape = WgmmaShape<Config>;
  if (args.batch_schedule.group_queries * args.attend.heads_per_kv == kWarpgroupRows) return;
  constexpr int kBytes = Config::kQueryBuffers * Shape::kQueryBytes;
  constexpr int kThreads = Shape::kConsumerThreads + kWarpgroupThreads;
  for (int at = thread_index() * 16; at < kBytes; at += kThreads * 16)
    *reinterpret_cast<uint4*>(smem.dynamic + at) = make_uint4(0, 0, 0, 0);
  fence_proxy_async();
}

/// The body of a generated entry: Args is a struct with members `maps`, an AttendMaps, and
/// `attend`, an AttendArgs; Hooks are the printed expressions (templates/README.md). Blocks are
/// persistent: block b takes work tiles b, b + grid, ...
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void attend_wgmma(const Args& args) {
  extern __shared__ __align__(1024) unsigned char wgmma_smem[];
  using Shape = WgmmaShape<Config>;
  using RowProducer = typename Select<Shape::kLooksAhead, TileGateProducer<Config, Hooks, Args>,
                                      WgmmaProducer<Config, Hooks, Args>>::Type;
  using ListProducer =
      typename Select<Shape::kOwnRows, TwoListProducer<Config, Hooks, Args>, RowProducer>::Type;
  using Producer =
      typename Select<Config::kGathers, GatherProducer<Config, Hooks, Args>, ListProducer>::Type;
  using Consumer16Bit = typename Select<Shape::kLooksAhead, TileGateConsumer<Config, Hooks, Args>,
                                        WgmmaConsumer<Config, Hooks, Args>>::Type;
  using Consumer =
      typename Select<Shape::kHas8Bits, Int8Consumer<Config, Hooks, Args>, Consumer16Bit>::Type;
  const WgmmaSmem<Config> smem{wgmma_smem};
  if (smem.tiles() % 1024 != 0) __trap();
  const int warp = warp_index();
  if (warp == 0 && elect_one()) {
    smem.init_barriers();
    if constexpr (!packs_heads<Config>()) {
      prefetch_map(args.maps.q);
      prefetch_map(args.maps.k);
      prefetch_map(args.maps.v);
      prefetch_map(args.maps.o);
    }
  }
  if constexpr (packs_heads<Config>()) clear_unused_rows(args, smem);
  __syncthreads();
  if (warp >= Shape::kConsumerWarps) {
    shrink_registers<Shape::kProducerRegisters>();
    if (warp < Shape::kConsumerWarps + Producer::kWarps) Producer(args, smem).run();
  } else {
    grow_registers<Shape::kConsumerRegisters>();
    Consumer(args, smem, warp / 4).run();
  }
}

}  // namespace lacuna
