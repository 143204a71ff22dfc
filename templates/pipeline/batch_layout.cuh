// What a Config says of its batch, and what it is where a Config does not say.
#pragma once

#include "base/kinds.cuh"

namespace lacuna {

/// Config::kBatch; else uniform.
template <class Config>
constexpr decltype(Config::kBatch) batch_layout(int) {
  return Config::kBatch;
}
template <class Config>
constexpr BatchLayout batch_layout(...) {
  return BatchLayout::kUniform;
}
template <class Config>
constexpr bool has_sequences() {
  return batch_layout<Config>(0) != BatchLayout::kUniform;
}

/// Has a launch of one sequence alone no block with this number, where `count` of them have work?
/// A row of blocks has more of them where its sequence is shorter than it may be.
template <class Config>
__device__ __forceinline__ bool is_beyond(int number, int count) {
  return has_sequences<Config>() && number >= count;
}

/// Config::kPacksHeads; else false: a work tile is of one head.
template <class Config>
constexpr decltype(Config::kPacksHeads) packs_heads_of(int) {
  return Config::kPacksHeads;
}
template <class Config>
constexpr bool packs_heads_of(...) {
  return false;
}
template <class Config>
constexpr bool packs_heads() {
  return packs_heads_of<Config>(0);
}

}  // namespace lacuna
