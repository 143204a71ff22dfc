// The scalar oracle: attention in fp64, straight from the definitions, independent of the compiler
// (its own masks as C++ functions, no Expr, no Program). Slow on purpose.
//
// Stage 1: oracle_tiles() says which tiles must be visited and gated. Stage 2: oracle_attention()
// computes the output under a given tile mask (the one the kernel reported).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace lacuna::oracle {

struct Problem {
  int n_b = 1, n_h = 1, n_h_kv = 1, n_q = 0, n_k = 0, d = 0;
  double scale = 0;
  std::vector<double> q, k,
      v;  ///< contiguous [n_b, n_h(_kv), n, d]; already rounded to the dtype under test
  /// Visible? Empty: everything.
  std::function<bool(int q, int k, int h, int b)> mask;
  /// Logit after softmax scale -> logit. Empty: identity.
  std::function<double(double s, int q, int k, int h, int b)> score;
};

enum class Scope { kWarp, kTile };

struct GateRule {
  Scope scope = Scope::kTile;
  bool skips_exp = false, skips_pv = false;
  /// Skip? i, j: tile indices; tile_max, gap in natural units.
  std::function<bool(double tile_max, double gap, int h, int b, int i, int j)> skip;
  /// How near the decision is to flipping, in natural units (0: on the threshold); for the allowed
  /// band.
  std::function<double(double tile_max, double gap, int h, int b, int i, int j)> margin;
};

struct Tiling {
  int tile_q = 128, tile_k = 64;
  bool descending = false;
};

/// 0 not visited, 1 visited, 2 gated (every scope of the tile gated), [n_b, n_h, q_tiles, k_tiles];
/// and for each tile the smallest margin of its gate decisions (infinity where there was none).
struct TileDecisions {
  std::vector<std::uint8_t> code;
  std::vector<double> margin;
};
TileDecisions oracle_tiles(const Problem& problem, const Tiling& tiling,
                           const std::optional<GateRule>& gate);

struct Output {
  std::vector<double> o;    ///< [n_b, n_h, n_q, d]
  std::vector<double> lse;  ///< [n_b, n_h, n_q]
};

/// Attention under a reported tile mask. Codes: 0 contributes nothing; 1 contributes; 2 contributes
/// to the denominator only if the gate skips just pv. With a warp gate the gate is simulated (a
/// tile's code is too coarse); codes 0 are still honoured.
Output oracle_attention(const Problem& problem, const Tiling& tiling,
                        const std::optional<GateRule>& gate,
                        const std::vector<std::uint8_t>& tile_mask);

}  // namespace lacuna::oracle
