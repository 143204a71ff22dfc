// Includes every header, with a sample variant of attend, for clangd, clang-tidy and a quick look:
// the shape of a generated kernel.cu (causal, int8 queries and keys, e4m3 values, tile gate).
#include "arch/launch.cuh"
#include "args/expr.cuh"
#include "attend/mma/attend_mma.cuh"
#include "attend/combine.cuh"
#include "prepare/permute.cuh"
#include "prepare/prepare.cuh"
#include "prepare/prepare_values.cuh"
#include "prepare/statistics.cuh"
#include "select/antidiagonal/cells.cuh"
#include "select/compact.cuh"
#include "select/pooled/pooled.cuh"
#include "select/keep/select.cuh"
#include "select/tokens/tokens.cuh"

struct Config {
  using Element = lacuna::bf16;
  static constexpr int kHeadDim = 128;
  static constexpr int kTileQ = 128;
  static constexpr int kTileK = 64;
  static constexpr int kStages = 2;
  static constexpr int kWarps = 8;
  static constexpr bool kDescending = true;
  static constexpr bool kHasMask = true;
  static constexpr bool kHasScore = false;
  static constexpr bool kUsesLists = false;
  static constexpr lacuna::GateScope kGateScope = lacuna::GateScope::kTile;
  static constexpr bool kSkipsVLoad = true;
  static constexpr bool kSkipsExp = true;
  static constexpr bool kSkipsPv = true;
  static constexpr bool kWritesLse = true;
  static constexpr int kQkBits = 8;
  static constexpr lacuna::QuantGroup kQkGroup = lacuna::QuantGroup::kThread;
  static constexpr int kQkTileK = 64;
  static constexpr int kVBits = 8;
  static constexpr bool kHasRowBias = false;
  static constexpr bool kHasColumnBias = false;
  static constexpr bool kGathers = false;
  static constexpr int kKeepK = 1;
  static constexpr bool kSharedHeads = false;
  static constexpr int kSmemBytes = 65664;
};

struct Args {
  lacuna::AttendArgs attend;
  lacuna::PredictArgs predict;
};

struct Hooks {
  __device__ static bool mask(const Args& args, int q, int k, int, int) {
    return k <= q + args.attend.n_k - args.attend.n_q;
  }
  __device__ static bool tile_full(const Args& args, int q0, int, int, int k1, int, int) {
    return k1 <= q0 + args.attend.n_k - args.attend.n_q;
  }
  __device__ static bool tile_visible(const Args& args, int, int q1, int k0, int, int, int) {
    return k0 <= q1 + args.attend.n_k - args.attend.n_q;
  }
  __device__ static float score(const Args&, float s, int, int, int, int) { return s; }
  __device__ static bool gate_skip(const Args&, float tile_max, float, int, int, int q0, int, int,
                                   int k1, int, int) {
    return tile_max < 0.0f && k1 < q0;
  }
};

extern "C" __global__ void __launch_bounds__(256, 1)
    lacuna_attend(const __grid_constant__ Args args) {
  lacuna::attend_mma<Config, Hooks>(args);
}
