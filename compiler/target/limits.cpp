#include "compiler/target/limits.hpp"

#include <algorithm>

namespace lacuna {
namespace {

constexpr int kElementBytes = 2;
/// Addresses, row maxima and sums, fragments of K and V in flight, the loop. Measured: what this
/// lets through ptxas 13.0 compiles without spilling (tests/compile), head_dim 256 with tile.k 64
/// being the tightest; what it refuses begins to spill (128 with 128).
constexpr int kOtherRegisters = 72;
/// Up to this head dim a warp keeps its queries in registers (templates/tile/warp_product.cuh).
constexpr int kLargestHeadDimOfKeptQueries = 128;
constexpr int kRegisterUnit = 8;  ///< registers of a thread are handed out in eights

constexpr int kVoteBytesPerWarp = 16;  ///< statistics of two tiles
constexpr int kValueTilesOnDemand = 2;

int key_and_value_tiles(const TileShape& shape) {
  return shape.stages + (shape.values_on_demand ? kValueTilesOnDemand : shape.stages);
}

int vote_bytes(const TileShape& shape) {
  return shape.votes ? kVoteBytesPerWarp * shape.warps() : 0;
}

}  // namespace

int smem_bytes(const TileShape& shape) {
  const int rows = shape.tile_q + shape.tile_k * key_and_value_tiles(shape);
  return rows * shape.head_dim * kElementBytes + vote_bytes(shape);
}

std::string smem_formula(const TileShape& shape) {
  std::string text = "(" + std::to_string(shape.tile_q) + " + " + std::to_string(shape.tile_k) +
                     " * " + std::to_string(key_and_value_tiles(shape)) + ") * " +
                     std::to_string(shape.head_dim) + " * " + std::to_string(kElementBytes);
  if (shape.votes) text += " + " + std::to_string(vote_bytes(shape));
  return text;
}

int registers_estimate(const TileShape& shape) {
  const int o = kWarpRows * shape.head_dim / kWarpThreads;
  const int s = kWarpRows * shape.tile_k / kWarpThreads;
  const int p = s / 2;  // two 16-bit elements in a register
  const int q = shape.head_dim <= kLargestHeadDimOfKeptQueries ? o / 2 : 0;
  const int sum = o + s + p + q + kOtherRegisters;
  return (sum + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
}

int registers_limit(const TileShape& shape, const Target& target) {
  const int share = target.registers_per_sm / shape.threads() / kRegisterUnit * kRegisterUnit;
  return std::min(share, target.registers_per_thread);
}

Occupancy occupancy(const TileShape& shape, const Target& target) {
  const int registers = registers_estimate(shape) * shape.threads();
  const Occupancy candidates[] = {
      {target.smem_bytes_per_sm / (smem_bytes(shape) + target.smem_bytes_reserved),
       "shared memory"},
      {target.registers_per_sm / registers, "registers"},
      {target.threads_per_sm / shape.threads(), "threads"},
      {target.blocks_per_sm, "blocks"},
  };
  return *std::min_element(std::begin(candidates), std::end(candidates),
                           [](const auto& a, const auto& b) { return a.blocks < b.blocks; });
}

}  // namespace lacuna
