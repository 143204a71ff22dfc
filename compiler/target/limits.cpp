#include "compiler/target/limits.hpp"

#include <algorithm>

#include "templates/shared/estimate_block.cuh"

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

/// The statistics of an estimate's rows, beside the tiles.
constexpr int kEstimateStatisticsBytes = 4096;

MmaBlock block_of(const TileShape& shape) {
  return {.tile_q = shape.tile_q,
          .tile_k = shape.tile_k,
          .stages = shape.stages,
          .head_dim = shape.head_dim,
          .head_dim_v = value_dim(shape),
          .qk_bits = shape.qk_bits,
          .v_bits = shape.v_bits,
          .votes = shape.votes,
          .values_on_demand = shape.values_on_demand,
          .e4m3_rows = shape.e4m3_rows,
          .v_of_k = shape.v_of_k};
}

}  // namespace

int smem_bytes(const TileShape& shape) { return block_of(shape).smem_bytes(); }

std::string smem_formula(const TileShape& shape) {
  const auto text_of = [](int number) { return std::to_string(number); };
  const MmaBlock block = block_of(shape);
  const std::string queries = text_of(shape.tile_q) + " queries";
  const std::string keys = text_of(shape.tile_k) + " keys";
  const std::string bytes = text_of(kElementBytes) + " bytes";
  const std::string row = text_of(shape.head_dim) + " elements";
  const std::string value_row = text_of(value_dim(shape));
  const std::string wider_row = text_of(std::max(shape.head_dim, value_dim(shape)));
  const std::string key_slots = text_of(shape.stages), value_slots = text_of(block.value_slots());
  std::string text;
  if (shape.e4m3_rows) {
    text = queries + " * " + wider_row + " * " + bytes + " + " + keys + " * (" + key_slots + " * " +
           text_of(shape.head_dim) + " + " + value_slots + " * " + value_row + " codes + " +
           text_of(block.key_tiles() * kElementBytes) + " * (" + text_of(shape.head_dim) + " + " +
           value_row + "))";
  } else if (shape.v_of_k) {
    text = "(" + queries + " + " + text_of(block.key_tiles()) + " tiles * " + keys + ") * " + row +
           " * " + bytes;
  } else if (value_dim(shape) != shape.head_dim) {
    text = "(" + queries + " * " + wider_row + " + " + keys + " * (" + key_slots + " * " +
           text_of(shape.head_dim) + " + " + value_slots + " * " + value_row + ")) * " + bytes;
  } else if (shape.has_8_bits()) {
    text = "(" + queries + " * " + bytes + " + " + keys + " * (" + key_slots + " * " +
           text_of(shape.qk_bits / 8) + " + " + value_slots + " * " + text_of(shape.v_bits / 8) +
           ")) * " + row;
  } else {
    text = "(" + queries + " + " + text_of(shape.stages + block.value_slots()) + " tiles * " +
           keys + ") * " + row + " * " + bytes;
  }
  return shape.votes ? text + " + " + text_of(block.vote_bytes()) + " of votes" : text;
}

int estimate_smem_bytes(int rows, int head_dim) {
  return token_tile_bytes(rows, head_dim) + kEstimateStatisticsBytes;
}

std::string estimate_smem_formula(int rows, int head_dim) {
  return "(" + std::to_string(rows) + " + " + std::to_string(kTokenColumns) + ") * " +
         std::to_string(head_dim) + " * " + std::to_string(kElementBytes) + " + " +
         std::to_string(kEstimateStatisticsBytes);
}

int registers_estimate(const TileShape& shape) {
  const int columns = value_dim(shape) / column_parts(value_dim(shape));
  const int o = kWarpRows * columns / kWarpThreads;
  const int s = kWarpRows * shape.tile_k / kWarpThreads;
  const int p = s * shape.v_bits / 32;  // as elements of V, packed
  const int rows = kWarpRows * shape.head_dim / kWarpThreads;
  const int q = shape.head_dim <= kLargestHeadDimOfKeptQueries ? rows * shape.qk_bits / 32 : 0;
  const int sum = o + s + p + q + kOtherRegisters;
  return (sum + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
}

int most_registers(int threads, const Target& target) {
  const int share = target.registers_per_sm / threads / kRegisterUnit * kRegisterUnit;
  return std::min(share, target.registers_per_thread);
}

int registers_limit(const TileShape& shape, const Target& target) {
  return most_registers(shape.threads(), target);
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
  const int blocks = std::ranges::min(candidates, {}, &Occupancy::blocks).blocks;
  std::string limited_by;
  for (const Occupancy& candidate : candidates) {
    if (candidate.blocks == blocks)
      limited_by += (limited_by.empty() ? "" : " and ") + candidate.limited_by;
  }
  return {blocks, limited_by};
}

}  // namespace lacuna
