// attend on int8 queries and keys, with 16-bit and with e4m3 values.
#include "tests/device/emulation/cuda.hpp"
#include "tests/device/single/attend/attend_variants.hpp"

namespace {
// clang-format off: the configurations need the kernel
#include "args/predict_args.cuh"
#include "attend/mma/attend_mma.cuh"
#include "tests/device/single/attend/attend_config.hpp"
// clang-format on

using single::Group;
using single::Skips;

}  // namespace

const std::vector<single::AttendVariant>& single::quantised_variants() {
  static const std::vector<AttendVariant> variants = {
      variant<{.qk_bits = 8}>("block"),
      variant<{.head_dim = 128,
               .tile_k = 32,
               .stages = 3,
               .is_descending = false,
               .is_causal = true,
               .qk_bits = 8,
               .group = Group::kWarp,
               .group_tile_k = 64}>("warp"),
      variant<{.head_dim = 96,
               .is_causal = true,
               .qk_bits = 8,
               .group = Group::kThread,
               .has_row_bias = true,
               .has_column_bias = true}>("thread_biased"),
      variant<{.tile_q = 128,
               .tile_k = 16,
               .is_causal = true,
               .has_score = true,
               .qk_bits = 8,
               .has_column_bias = true}>("block_scored"),
      variant<{.head_dim = 128,
               .is_bf16 = true,
               .is_causal = true,
               .skips = Skips::kTileV,
               .qk_bits = 8,
               .group = Group::kThread,
               .has_row_bias = true}>("thread_gated"),
      variant<{.head_dim = 256, .tile_k = 32, .is_causal = true, .qk_bits = 8}>("wide"),
      variant<{.is_causal = true, .qk_bits = 8, .v_bits = 8}>("e4m3"),
      variant<{.head_dim = 128,
               .tile_k = 32,
               .stages = 4,
               .is_descending = false,
               .is_causal = true,
               .qk_bits = 8,
               .v_bits = 8,
               .group = Group::kThread,
               .has_row_bias = true,
               .has_column_bias = true}>("e4m3_biased"),
      variant<{.head_dim = 96,
               .tile_k = 128,
               .is_causal = true,
               .skips = Skips::kTileV,
               .qk_bits = 8,
               .v_bits = 8,
               .group = Group::kWarp}>("e4m3_gated"),
      variant<{.tile_q = 32, .tile_k = 32, .is_bf16 = true, .skips = Skips::kWarpPv, .v_bits = 8}>(
          "e4m3_alone"),
  };
  return variants;
}
