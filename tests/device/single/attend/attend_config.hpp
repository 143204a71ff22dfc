// A configuration of attend/mma/attend_mma.cuh for each choice; to be included after it, in the
// same namespace.
#pragma once

#include "tests/device/single/attend/causal_hooks.hpp"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};

struct Hooks;

template <single::AttendChoice kChoice>
struct Config {
  using Element = std::conditional_t<kChoice.is_bf16, lacuna::bf16, lacuna::f16>;
  static constexpr int kHeadDim = kChoice.head_dim;
  static constexpr int kTileQ = kChoice.tile_q;
  static constexpr int kTileK = kChoice.tile_k;
  static constexpr int kStages = kChoice.stages;
  static constexpr int kWarps = kTileQ / 16;
  static constexpr bool kDescending = kChoice.is_descending;
  static constexpr bool kHasMask = kChoice.is_causal;
  static constexpr bool kHasScore = kChoice.has_score;
  static constexpr bool kUsesLists = false;
  static constexpr lacuna::GateScope kGateScope =
      kChoice.skips == single::Skips::kNothing ? lacuna::GateScope::kNone
      : kChoice.skips == single::Skips::kTileV ? lacuna::GateScope::kTile
                                               : lacuna::GateScope::kWarp;
  static constexpr bool kSkipsVLoad = kChoice.skips == single::Skips::kTileV;
  static constexpr bool kSkipsExp = kSkipsVLoad;
  static constexpr bool kSkipsPv = kChoice.skips != single::Skips::kNothing;
  static constexpr bool kWritesLse = true;
  static constexpr int kQkBits = kChoice.qk_bits;
  static constexpr lacuna::QuantGroup kQkGroup =
      lacuna::QuantGroup{static_cast<int>(kChoice.group)};
  static constexpr int kQkTileK = kChoice.group_tile_k == 0 ? kTileK : kChoice.group_tile_k;
  static constexpr int kVBits = kChoice.v_bits;
  static constexpr bool kHasRowBias = kChoice.has_row_bias;
  static constexpr bool kHasColumnBias = kChoice.has_column_bias;
  static constexpr bool kGathers = kChoice.gathers;
  static constexpr int kKeepK = kChoice.keep_k;
  static constexpr bool kSharedHeads = kChoice.has_shared_heads;
  template <int kBits>
  using Rows = std::conditional_t<kBits == 8, lacuna::QuantisedRows, lacuna::TokenRows>;
  template <template <class, int> class RowLoader>
  using Operands = lacuna::AttendOperands<Config, RowLoader, Rows<kQkBits>, Rows<kVBits>>;
  using Producer = std::conditional_t<kChoice.gathers, Operands<lacuna::GatherLoader>,
                                      Operands<lacuna::RowTileLoader>>;
  using Walk = std::conditional_t<kChoice.gathers, lacuna::GatherWalk<Config, Args>,
                                  lacuna::MaskWalk<Config, Hooks, Args>>;
  using Logits = std::conditional_t<kChoice.qk_bits == 8, lacuna::QuantisedLogits<Config>,
                                    lacuna::PlainLogits>;
  using Consumer = lacuna::AttendBlock<Config, Hooks, Args, Logits>;
  // The formula of the contract, written out again.
  static constexpr int kSmemBytes =
      kHeadDim * (kTileQ * 2 +
                  kTileK * (kStages * kQkBits / 8 + (kSkipsVLoad ? 2 : kStages) * kVBits / 8)) +
      (kSkipsVLoad ? 16 * kWarps : 0);
};

struct Hooks : CausalHooks<Args> {
  static float score(const Args&, float s, int, int k, int, int) {
    return s + single::kScoreSlope * static_cast<float>(k);
  }
  struct ScoreRow {
    static constexpr bool kHasCore = false, kHasOffset = true, kHasSlope = true, kHasRest = false;
    static constexpr bool kRestHasDistance = false, kRestHasKey = false;
    static constexpr int kElements = 0;
    float factor, slope;
  };
  static ScoreRow score_row(const Args&, int, int, int) { return {1.0f, single::kScoreSlope}; }
  static float score_offset(const Args& args, const ScoreRow&, int q, int k, int h, int b) {
    return score(args, 0.0f, q, k, h, b);
  }
  static GateRow gate_row(const Args&, int, int, int, int, int) { return {single::kGateGap}; }
};

template <single::AttendChoice kChoice>
single::AttendVariant variant(const char* name) {
  const auto body = [](const void* args) {
    lacuna::attend_mma<Config<kChoice>, Hooks>(*static_cast<const Args*>(args));
  };
  return {name, kChoice, Config<kChoice>::kSmemBytes, {body, lacuna::block_smem}};
}
