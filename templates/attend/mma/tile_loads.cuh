// Loads of a block of the mma family: its queries, and the tiles of keys and values ahead of their
// use.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "attend/mma/attend_block.cuh"

namespace lacuna {

template <class Block>
__device__ __forceinline__ void load_keys(const Block& at, int n) {
  using Config = typename Block::Config;
  const TileRef tile = at.queue.ahead(n);
  if (tile.exists()) at.keys.load(at.landed_keys(n), tile.index() * Config::kTileK);
}

/// The tile `ahead` steps ahead, which is the t-th visited.
template <class Block>
__device__ __forceinline__ void load_values(const Block& at, int t, int ahead) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  if constexpr (Shape::kVOfK) return;
  const TileRef tile = at.queue.ahead(ahead);
  if (!tile.exists()) return;
  if constexpr (Shape::kHasE4m3Values) {
    at.values.load_columns(at.value_slot(t), tile.index() * Config::kTileK);
  } else {
    at.values.load(at.landed_values(t), tile.index() * Config::kTileK);
  }
}

/// Queries and the pipeline's fill: as many groups as the loop's waits expect.
template <class Block>
__device__ __forceinline__ void start_loads(const Block& at) {
  using Config = typename Block::Config;
  using Operands = typename Block::Operands;
  Operands::queries(at.args, at.row).load(shared_address(at.smem), at.row.q0);
  load_keys(at, 0);
  cp_async_commit();
#pragma unroll
  for (int n = 1; n < Config::kStages; ++n) {
    if (!Config::kSkipsVLoad && n >= 2) load_values(at, n - 2, n - 2);
    load_keys(at, n);
    cp_async_commit();
  }
}

/// The loads that follow the barrier of visit t.
template <class Block>
__device__ __forceinline__ void prefetch(const Block& at, int t, bool gated) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  if constexpr (Config::kSkipsVLoad) {
    if (!gated) load_values(at, t, 0);
    cp_async_commit();
  } else {
    load_values(at, t + Shape::kValueAhead, Shape::kValueAhead);
  }
  const TileRef tile = at.queue.ahead(Config::kStages);
  // Of as many places as stages, that of the t-th is free.
  const int place = Shape::kVOfK ? t + Config::kStages : t;
  if (tile.exists()) at.keys.load(at.landed_keys(place), tile.index() * Config::kTileK);
  cp_async_commit();
}

/// Of the t-th visited tile, which is `ahead` steps ahead: 16-bit keys of codes that have landed.
/// The tile in whose place they come was read before the barrier that lies behind.
template <class Block>
__device__ __forceinline__ void convert_keys(const Block& at, int t, int ahead) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  if constexpr (Shape::kHasE4m3Rows) {
    const TileRef tile = at.queue.ahead(ahead);
    if (!tile.exists()) return;
    at.keys.convert(at.bytes_at(at.landed_keys(t)), at.bytes_at(at.key_slot(t)),
                    tile.index() * Config::kTileK);
  }
}

/// The same for the values of the tile visited last, which is the t-th. Of a tile that the gate
/// has spared nothing has landed, and what is made of that is not read.
template <class Block>
__device__ __forceinline__ void convert_values(const Block& at, int t) {
  using Shape = typename Block::Shape;
  if constexpr (Shape::kHasE4m3Rows)
    at.values.convert(at.bytes_at(at.landed_values(t)), at.bytes_at(at.value_slot(t)),
                      at.last_first_key);
}

}  // namespace lacuna
