// The hooks of the predictor's test kernels; predict_reference.cpp has the same conditions for the
// host.
#pragma once

#include "tests/device/single/predict/predict_cases.hpp"

namespace lacuna {

template <const PredictCase& kCase>
struct PredictHooks {
  using Args = PredictKernelArgs;

  static bool mask(const Args& args, int q, int k, int, int) {
    return k <= q + args.attend.n_k - args.attend.n_q;
  }
  static bool tile_full(const Args& args, int q0, int, int, int k1, int, int) {
    return k1 <= q0 + args.attend.n_k - args.attend.n_q;
  }
  static bool tile_visible(const Args& args, int, int q1, int k0, int, int, int) {
    return k0 <= q1 + args.attend.n_k - args.attend.n_q;
  }
  static bool reference(const Args& args, int q, int k) {
    return k < args.sink || q - k < args.local;
  }
  static bool reference_full(const Args& args, int, int q1, int k0, int k1) {
    return k1 < args.sink || q1 - k0 < args.local;
  }
  static bool reference_possible(const Args& args, int q0, int, int k0, int k1) {
    return k0 < args.sink || q0 - k1 < args.local;
  }
  static bool exclude(const Args& args, float, float similar_k, int, int, int, int, int, int, int,
                      int) {
    return similar_k < args.theta;
  }
  struct KeepParts {};
  static KeepParts keep_parts(const Args&, int, int, int, int, int) { return {}; }
  static bool keep(const Args& args, const KeepParts&, float score, float p, int rank,
                   float mass_before, int visible, float similar_q, float, int i, int j, int q0,
                   int, int k0, int k1, int h, int b) {
    if (kCase.first) return rank < args.top;
    const PredictArgs& predict = args.predict;
    const long long row = (static_cast<long long>(b) * args.attend.n_h + h) * predict.keep_q_tiles;
    TileRecord& record = args.records[(row + i) * predict.keep_k_tiles + j];
    record = {score, p, mass_before, rank, visible, record.calls + 1};
    if (kCase.excludes && similar_q < args.theta) return true;
    if (kCase.rows == RowKind::kNone) return k0 < args.sink || q0 - k1 < args.local;
    return keep_p(args, p, similar_q, i, 0, 0, h, b) ||
           (kCase.ranked && (rank < args.top || mass_before + p <= args.mass));
  }
  static bool keep_rank(const Args& args, int rank, int, float, int, int, int, int, int) {
    return rank < args.top;
  }
  static bool keep_p(const Args& args, float p, float, int, int, int, int, int) {
    return kCase.falls ? p < args.tau : p > args.tau;
  }
};

template <bool kF16>
struct ElementOf {
  using Type = bf16;
};
template <>
struct ElementOf<true> {
  using Type = f16;
};

/// What all configurations say alike.
template <const PredictCase& kCase>
struct PredictConfig {
  using Element = typename ElementOf<kCase.is_f16>::Type;
  static constexpr int kHeadDim = kCase.head_dim;
  static constexpr int kThreads = 256;
  static constexpr int kTileQ = kCase.tile_q, kTileK = kCase.tile_k;
  static constexpr int kBits = kCase.bits;
  static constexpr QuantGroup kGroup = kCase.group;
  static constexpr int kCell = kCase.rows == RowKind::kAntidiagonal ? kCase.count : 1;
  static constexpr int kCellK = kCell;
  static constexpr bool kCellsAreMeans = false;
  static constexpr float kTemperature = kCase.temperature;
  static constexpr int kLastRows = kCase.rows == RowKind::kLast ? kCase.count : 0;
  static constexpr bool kHasRowBias = kCase.biased, kHasColumnBias = kCase.biased;
  static constexpr Normalise kNormalise = kCase.normalise;
  static constexpr bool kSums = kCase.sums;
  static constexpr bool kHasMask = kCase.causal;
  static constexpr bool kHasExclude = kCase.excludes;
  static constexpr Step kStep = Step::kOnly;
  static constexpr bool kUsesScore = kCase.scored;
  static constexpr bool kHasOneOrder = kCase.first && kCase.rows == RowKind::kLast;
  static constexpr bool kUsesMass = kCase.ranked, kOrdersTiles = kCase.ranked || kHasOneOrder;
  static constexpr bool kKeepsFirst = kCase.first && !kHasOneOrder, kKeepsByPlace = false;
  static constexpr bool kHasThreshold = kCase.threshold;
  static constexpr bool kUsesSimilarQ = kCase.excludes, kUsesSimilarK = kCase.excludes;
};

}  // namespace lacuna
