// Variants of attend/mma/attend_mma.cuh with quantised or gathered operands that the tests run, and
// of prepare/prepare_values.cuh.
#pragma once

#include <string>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace single {

enum class Group { kBlock, kWarp, kThread };
enum class Skips { kNothing, kTileV, kWarpPv };

/// What the configurations of these kernels differ in.
struct AttendChoice {
  int head_dim = 64, tile_q = 64, tile_k = 64, stages = 2;
  bool is_bf16 = false, is_descending = true;
  bool is_causal = false;  ///< k <= q + n_k - n_q
  bool has_score = false;  ///< s + kScoreSlope * k
  Skips skips = Skips::kNothing;
  int qk_bits = 16, v_bits = 16;
  Group group = Group::kBlock;
  int group_tile_k = 0;  ///< 0: tile_k
  bool has_row_bias = false, has_column_bias = false;
  bool gathers = false;
  int keep_k = 1;
  bool has_shared_heads = false;
};

inline constexpr float kScoreSlope = 0.02F;
inline constexpr float kGateGap = -1.5F;  ///< tiles whose maxima trail by more are skipped

struct AttendVariant {
  std::string name;
  AttendChoice choice;
  int smem_bytes;
  emulation::Kernel kernel;
};

const std::vector<AttendVariant>& quantised_variants();
const std::vector<AttendVariant>& gathering_variants();

struct ValuesVariant {
  int head_dim;
  bool is_bf16;
  emulation::Kernel kernel;
};

const std::vector<ValuesVariant>& values_variants();

}  // namespace single
