// The copy engine (sm_90): boxes of a tensor between global and swizzled shared memory. One thread
// issues.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/copy/tensor_map.cuh"

namespace lacuna {

template <L2Policy kPolicy>
__device__ __forceinline__ unsigned long long l2_policy() {
  unsigned long long policy;
  if constexpr (kPolicy == L2Policy::kKeepFirst) {
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}

/// Brings a box to `target`; its bytes are counted by `full`.
__device__ __forceinline__ void tma_load(const TensorMap& map, u32 target, Mbarrier full,
                                         const BoxOrigin& at, unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(target),
      "l"(&map), "r"(full.address), "r"(at.element), "r"(at.token), "r"(at.panel), "r"(at.head),
      "r"(at.batch), "l"(policy)
      : "memory");
}

/// Brings `bytes` neighbouring bytes, a multiple of 16 as both addresses are.
__device__ __forceinline__ void bulk_load(const void* source, u32 target, int bytes,
                                          Mbarrier full) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(target),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(full.address)
      : "memory");
}

/// Writes a box from `source`.
__device__ __forceinline__ void tma_store(const TensorMap& map, u32 source, const BoxOrigin& at) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], "
      "[%1];" ::"l"(&map),
      "r"(source), "r"(at.element), "r"(at.token), "r"(at.panel), "r"(at.head), "r"(at.batch)
      : "memory");
}

/// Closes the group of this thread's stores; tma_store_wait_read waits until all of them have read
/// their source.
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// What this thread wrote to shared memory becomes visible to the copy engine and to wgmma.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace lacuna
