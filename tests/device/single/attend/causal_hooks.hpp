// Hooks of a causal mask, for kernels of attend; to be included after those, in the same namespace.
#pragma once

template <class Args>
struct CausalHooks {
  static bool mask(const Args& args, int q, int k, int, int) {
    return k <= q + args.attend.n_k - args.attend.n_q;
  }
  static bool tile_full(const Args& args, int q0, int, int, int k1, int, int) {
    return mask(args, q0, k1, 0, 0);
  }
  static bool tile_visible(const Args& args, int, int q1, int k0, int, int, int) {
    return mask(args, q1, k0, 0, 0);
  }
  // No ranges: masks are asked about each key here; generated kernels have them.
  struct MaskRow {
    static constexpr int kRanges = 0;
    static constexpr bool kReadsParameters = false;
  };
  struct GateRow {
    float least_gap;
  };
  static bool gate_skip(const Args&, const GateRow& row, float, float gap, int, int, int, int, int,
                        int, int, int) {
    return gap < row.least_gap;
  }
};
