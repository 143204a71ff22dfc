// `attend`, wgmma family (sm_90a): TMA, wgmma, warp-specialised. See
// attend/wgmma/layout/wgmma_shape.cuh for the roles and their barriers.
#pragma once

#include "attend/wgmma/consumers/chained_consumer.cuh"
#include "attend/wgmma/consumers/consumer.cuh"
#include "attend/wgmma/consumers/int8/int8_consumer.cuh"
#include "attend/wgmma/consumers/pass_steps.cuh"
#include "attend/wgmma/consumers/tile_gate_consumer.cuh"
#include "attend/wgmma/producers/converting_producer.cuh"
#include "attend/wgmma/producers/gather_producer.cuh"
#include "attend/wgmma/producers/sequence_producer.cuh"
#include "attend/wgmma/producers/tile_gate_producer.cuh"
#include "attend/wgmma/producers/two_list_producer.cuh"
#include "pipeline/schedule_sequences.cuh"

namespace lacuna {

/// Zeros the queries' buffers where a tile has rows that stand for no query: no load fills those.
/// Later they hold only their own results, which are never written out.
template <class Config, class Args>
__device__ __forceinline__ void clear_unused_rows(const Args& args, const WgmmaSmem<Config>& smem) {
  using Shape = WgmmaShape<Config>;
  if (args.batch_schedule.group_queries * tile_heads<Config>(args) == kWarpgroupRows) return;
  constexpr int kBytes = Config::kQueryBuffers * Shape::kQueryBytes;
  constexpr int kThreads = Shape::kConsumerThreads + kWarpgroupThreads;
  for (int at = thread_index() * 16; at < kBytes; at += kThreads * 16)
    *reinterpret_cast<uint4*>(smem.dynamic + at) = make_uint4(0, 0, 0, 0);
  fence_proxy_async();
}

/// Registers of a thread of each role.
template <class Config, class Hooks>
__host__ __device__ constexpr WgmmaRegisters role_registers() {
  return wgmma_registers(
      Config::kWarpgroups,
      {Config::kGathers, WgmmaShape<Config>::kOwnRows, has_sequence_tiles<Config>(),
       WgmmaShape<Config>::kMakesRows, !kHasCheapMask<Config, Hooks> || has_long_bounds<Config>(),
       has_two_widths(Config::kHeadDim, head_dim_v<Config>())});
}

/// What a consumer warpgroup does that has no queries: makes rows of codes beside the producer's
/// warps, or passes steps on.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void stand_in(const Args& args, const WgmmaSmem<Config>& smem,
                                         int warpgroup) {
  if constexpr (WgmmaShape<Config>::kMakesRows) {
    CodeConverter<Config, Args, true> converter(args, smem, warp_of_warpgroup());
    while (converter.convert_next()) {
    }
  } else {
    ConsumerState<Config, Hooks, Args> state(args, smem, warpgroup);
    pass_steps(state);
  }
}

/// The body of a generated entry: Args is a struct with members `maps`, an AttendMaps, and
/// `attend`, an AttendArgs; Hooks are the printed expressions (templates/README.md), which the
/// Config's producer and consumer call. Blocks are persistent: block b takes work tiles b, b +
/// grid, ...
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void attend_wgmma(const Args& args) {
  extern __shared__ __align__(1024) unsigned char wgmma_smem[];
  using Shape = WgmmaShape<Config>;
  using Producer = typename Config::Producer;
  using Consumer = typename Config::Consumer;
  const WgmmaSmem<Config> smem{wgmma_smem};
  if (smem.tiles() % 1024 != 0) __trap();
  const int warp = warp_index();
  if (warp == 0 && elect_one()) {
    smem.init_barriers(warps_of_launch<Config>(args));
    if constexpr (!has_sequence_tiles<Config>()) {
      prefetch_map(args.maps.q);
      prefetch_map(args.maps.k);
      prefetch_map(args.maps.v);
      prefetch_map(args.maps.o);
    }
  }
  if constexpr (has_sequence_tiles<Config>()) {
    clear_unused_rows(args, smem);
    constexpr int kThreads = Shape::kConsumerThreads + kWarpgroupThreads;
    schedule_sequences<Config, kThreads>(args, smem.control()->schedule_part);
  }
  __syncthreads();
  if (warp >= Shape::kConsumerWarps) {
    shrink_registers<role_registers<Config, Hooks>().producer>();
    if (warp < Shape::kConsumerWarps + Producer::kWarps) Producer(args, smem).run();
  } else {
    grow_registers<role_registers<Config, Hooks>().consumer>();
    const int warpgroup = warp / 4;
    if constexpr (has_sequence_tiles<Config>()) {
      if (!has_queries<Config>(args, warpgroup)) {
        stand_in<Config, Hooks>(args, smem, warpgroup);
        return;
      }
    }
    Consumer(args, smem, warpgroup).run();
  }
}

}  // namespace lacuna
