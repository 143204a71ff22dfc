// Tensor maps in global memory that the device itself makes from others (sm_90a): copied word by
// word, moved and cut. The copy engine reads maps through a cache of its own, so a map that was
// made on the device needs a fence before it is used.
#pragma once

#include "arch/copy/tensor_map.cuh"
#include "base/ints.cuh"

namespace lacuna {

/// Part `n` of 8.
__device__ __forceinline__ void copy_map_part(TensorMap* to, const TensorMap& from, int n) {
  reinterpret_cast<uint4*>(to)[n] = reinterpret_cast<const uint4*>(&from)[n];
}

/// Where the first element lies.
__device__ __forceinline__ void set_map_data(TensorMap* map, const void* data) {
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map),
               "l"(data)
               : "memory");
}

/// How many tokens there are, at least 1.
__device__ __forceinline__ void set_map_tokens(TensorMap* map, int tokens) {
  asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, %1;" ::"l"(map),
               "r"(tokens)
               : "memory");
}

/// By the whole warp that has copied and set them, behind a __syncwarp.
__device__ __forceinline__ void publish_maps() {
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

/// Before a thread's first use of a map that was published, and that it knows to be published.
__device__ __forceinline__ void acquire_map(const TensorMap& map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}

}  // namespace lacuna
