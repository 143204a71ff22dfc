#include "tests/device/single/prepare/prepare.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "prepare/prepare.cuh"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

using single::PrepareShape;

template <bool kIsBF16>
struct ElementOf {
  using Type = lacuna::bf16;
};
template <>
struct ElementOf<false> {
  using Type = lacuna::f16;
};

template <PrepareShape kShape>
struct Config {
  using Element = typename ElementOf<kShape.is_bf16>::Type;
  static constexpr int kHeadDim = kShape.head_dim;
  static constexpr int kThreads = 256;
  static constexpr int kSmemBytes = 32768;
  static constexpr bool kIsQuery = kShape.is_query;
  static constexpr int kTokens = kShape.tokens;
  static constexpr bool kSmooth = kShape.smooth;
  static constexpr bool kSmoothSummary = kShape.smooth_summary;
  static constexpr int kSummaryTile = kShape.summary_tile;
  static constexpr bool kRoundsSummary = false;
  static constexpr int kSimilarityTile = kShape.similarity_tile;
  static constexpr bool kGramMax = kShape.gram_max;
  static constexpr int kBits = kShape.bits;
  static constexpr auto kGroup = static_cast<lacuna::QuantGroup>(kShape.group);
  static constexpr int kTile = kShape.tile;
  static constexpr int kEstimateBits = kShape.estimate_bits;
  static constexpr auto kEstimateGroup = static_cast<lacuna::QuantGroup>(kShape.estimate_group);
  static constexpr int kEstimateTile = kShape.estimate_tile;
  static constexpr bool kBias = kShape.bias;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};
struct Hooks {};

template <PrepareShape kShape>
single::PrepareVariant variant() {
  const auto run_thread = [](const void* args) {
    lacuna::prepare_tokens<Config<kShape>, Hooks>(*static_cast<const Args*>(args));
  };
  return {kShape, {run_thread, lacuna::block_smem}};
}

}  // namespace

const std::vector<single::PrepareVariant>& single::prepare_variants() {
  constexpr int kBlock = 0, kWarp = 1, kThread = 2;
  constexpr bool kQ = true, kK = false, kBF16 = true, kF16 = false;
  static const std::vector<PrepareVariant> variants = {
      // summaries, similarities and one kind of integers, as for pooled estimates
      variant<{kQ, kBF16, 128, 128, false, false, 128, 128, false, 8, kBlock, 128, 0, kBlock, 0,
               false}>(),
      variant<{kK, kBF16, 128, 64, true, true, 64, 64, false, 8, kBlock, 64, 0, kBlock, 0,
               false}>(),
      variant<{kK, kF16, 64, 128, true, false, 64, 64, true, 8, kThread, 64, 0, kBlock, 0,
               false}>(),
      variant<{kQ, kF16, 96, 256, true, false, 64, 256, false, 8, kWarp, 128, 0, kBlock, 0,
               false}>(),
      variant<{kK, kBF16, 256, 64, true, true, 32, 64, true, 8, kWarp, 32, 0, kBlock, 0, false}>(),
      // integers for attend and others for the estimate, and what smoothing took away
      variant<{kQ, kBF16, 128, 128, true, false, 0, 0, false, 8, kWarp, 128, 4, kThread, 64,
               true}>(),
      variant<{kK, kBF16, 128, 64, true, false, 0, 0, false, 8, kBlock, 64, 4, kThread, 32,
               true}>(),
      variant<{kQ, kF16, 64, 64, false, false, 0, 0, false, 0, kBlock, 0, 8, kThread, 16, true}>(),
      variant<{kK, kF16, 96, 32, false, false, 16, 32, false, 8, kThread, 32, 8, kBlock, 16,
               true}>(),
      variant<{kQ, kBF16, 256, 128, true, false, 16, 16, false, 8, kThread, 64, 4, kBlock, 64,
               true}>(),
      // small tiles: several in a pass of one warp
      variant<{kK, kBF16, 64, 256, true, true, 1, 8, false, 0, kBlock, 0, 0, kBlock, 0, false}>(),
      variant<{kK, kF16, 96, 64, false, false, 2, 4, true, 4 * 2, kBlock, 8, 0, kBlock, 0,
               false}>(),
      // biases alone
      variant<{kK, kF16, 128, 256, true, false, 0, 0, false, 0, kBlock, 0, 0, kBlock, 0, true}>(),
  };
  return variants;
}
