// attend on gathered keys, one to sixteen keys a column.
#include "tests/device/emulation/cuda.hpp"
#include "tests/device/single/attend/attend_variants.hpp"

namespace {
// clang-format off: the configurations need the kernel
#include "args/predict_args.cuh"
#include "attend/mma/attend_mma.cuh"
#include "tests/device/single/attend/attend_config.hpp"
// clang-format on
}  // namespace

const std::vector<single::AttendVariant>& single::gathering_variants() {
  static const std::vector<AttendVariant> variants = {
      variant<{.is_descending = false, .gathers = true}>("ones"),
      variant<{.head_dim = 128,
               .stages = 3,
               .is_descending = false,
               .is_causal = true,
               .has_score = true,
               .gathers = true,
               .has_shared_heads = true}>("ones_causal_shared"),
      variant<{.head_dim = 96,
               .tile_k = 32,
               .is_bf16 = true,
               .is_descending = false,
               .is_causal = true,
               .gathers = true,
               .keep_k = 8}>("eights"),
      variant<{.tile_q = 128,
               .is_descending = false,
               .gathers = true,
               .keep_k = 16,
               .has_shared_heads = true}>("sixteens"),
      variant<{.head_dim = 256, .tile_k = 16, .is_causal = true, .gathers = true, .keep_k = 16}>(
          "sixteens_descending"),
  };
  return variants;
}
