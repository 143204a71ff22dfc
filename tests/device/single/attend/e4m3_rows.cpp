#include "tests/device/single/attend/e4m3_rows.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "args/kv_scale_args.cuh"
#include "args/predict_args.cuh"
#include "attend/mma/attend_mma.cuh"
#include "tests/device/single/attend/causal_hooks.hpp"

namespace lacuna {
unsigned char block_smem[227 * 1024];
}

struct Choice {
  int head_dim, tile_q, tile_k, stages;
  bool is_bf16, loads_values_late;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::KvScaleArgs kv_scales;
};

struct Hooks;

template <Choice kChoice, bool kE4m3>
struct Config {
  using Element = std::conditional_t<kChoice.is_bf16, lacuna::bf16, lacuna::f16>;
  static constexpr int kHeadDim = kChoice.head_dim, kTileQ = kChoice.tile_q;
  static constexpr int kTileK = kChoice.tile_k, kStages = kChoice.stages, kWarps = kTileQ / 16;
  static constexpr bool kHasE4m3Rows = kE4m3;
  static constexpr bool kDescending = false, kHasMask = true, kHasScore = false;
  static constexpr bool kUsesLists = false, kGathers = false, kSharedHeads = false;
  static constexpr bool kHasRowBias = false, kHasColumnBias = false, kWritesLse = true;
  static constexpr bool kSkipsVLoad = kChoice.loads_values_late;
  static constexpr bool kSkipsExp = kSkipsVLoad, kSkipsPv = kSkipsVLoad;
  static constexpr lacuna::GateScope kGateScope =
      kSkipsVLoad ? lacuna::GateScope::kTile : lacuna::GateScope::kNone;
  static constexpr int kQkBits = 16, kVBits = 16, kQkTileK = kTileK, kKeepK = 1;
  static constexpr lacuna::QuantGroup kQkGroup = lacuna::QuantGroup::kBlock;
  using Rows = std::conditional_t<kE4m3, lacuna::E4m3Rows, lacuna::TokenRows>;
  using Producer = lacuna::AttendOperands<Config, lacuna::RowTileLoader, Rows, Rows>;
  using Walk = lacuna::MaskWalk<Config, Hooks, Args>;
  using Consumer = lacuna::AttendBlock<Config, Hooks, Args, lacuna::PlainLogits>;
  // The formula of the contract, written out again.
  static constexpr int kLanded = kTileK * (kStages + (kSkipsVLoad ? 2 : kStages)) * kHeadDim;
  static constexpr int kSmemBytes = kTileQ * kHeadDim * 2 +
                                    (kE4m3 ? kLanded + 4 * kTileK * kHeadDim * 2 : 2 * kLanded) +
                                    (kSkipsVLoad ? 16 * kWarps : 0);
};

struct Hooks : CausalHooks<Args> {
  static GateRow gate_row(const Args&, int, int, int, int, int) { return {-1.5F}; }
};

template <Choice kChoice, bool kE4m3>
emulation::Kernel kernel() {
  const auto body = [](const void* args) {
    lacuna::attend_mma<Config<kChoice, kE4m3>, Hooks>(*static_cast<const Args*>(args));
  };
  return {body, lacuna::block_smem};
}

template <Choice kChoice>
single::RowsVariant variant(const char* name) {
  return {name,
          kChoice.head_dim,
          kChoice.tile_q,
          kChoice.tile_k,
          kChoice.is_bf16,
          Config<kChoice, false>::kSmemBytes,
          Config<kChoice, true>::kSmemBytes,
          kernel<kChoice, false>(),
          kernel<kChoice, true>()};
}

}  // namespace

const std::vector<single::RowsVariant>& single::rows_variants() {
  static const std::vector<RowsVariant> variants = {
      variant<Choice{64, 64, 64, 2, true, false}>("d64_bf16"),
      variant<Choice{128, 64, 32, 3, false, false}>("d128_f16_three_stages"),
      variant<Choice{96, 32, 32, 2, true, true}>("d96_bf16_values_behind_a_gate"),
      variant<Choice{256, 32, 32, 4, false, false}>("d256_f16_four_stages")};
  return variants;
}
