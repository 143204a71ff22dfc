// The scalar oracle: attention in fp64, straight from the definitions, independent of the compiler
// (its own masks as C++ functions, no Expr, no Program). Slow on purpose.
//
// Part 1: oracle_kept() (predict.hpp) says which tiles a predictor keeps, oracle_tiles() which
// must be visited and gated. Part 2: oracle_attention() computes the output under a given tile
// mask (the one the kernel reported). Quantised operands are a Problem of their own (quantise.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace lacuna::oracle {

enum class Weighting { kSoftmax, kSigmoid, kLogit };

struct Problem {
  int n_b = 1, n_h = 1, n_h_kv = 1, n_q = 0, n_k = 0, d = 0;
  int d_v = 0;  ///< of v and o; 0: d
  double scale = 0;
  std::vector<double> q, k,
      v;  ///< contiguous [n_b, n_h(_kv), n, d or d_v], already rounded to the dtype under test
  /// Added to q . k before the scale, [n_b, n_h, n_q] and [n_b, n_h, n_k]. Empty: nothing.
  std::vector<double> row_bias, column_bias;
  /// Weights relative to the row's running maximum are rounded to e4m3 of 448 * weight, tile by
  /// tile.
  bool e4m3_weights = false;
  /// Visible? Empty: everything.
  std::function<bool(int q, int k, int h, int b)> mask;
  /// Scaled logit -> logit. Empty: identity.
  std::function<double(double s, int q, int k, int h, int b)> score;
  /// Does the rounding of s decide what the score of a pair is? Then nothing is known of its row.
  /// Empty: nowhere.
  std::function<bool(double s, int q, int k, int h, int b)> wavers;
  /// A logit of each row that counts in the denominator and the LSE alone. Empty: none.
  std::function<double(int q, int h, int b)> sink;
  bool lse_is_base_2 = false;  ///< else natural
  /// Of sigmoids of logits, and of logits that are weights themselves, nothing divides the sum; lse
  /// is 0.
  Weighting weighting = Weighting::kSoftmax;

  int value_dim() const { return d_v > 0 ? d_v : d; }
};

inline constexpr int kWarpRows = 16;

struct Tiling {
  int tile_q = 128, tile_k = 64;
  bool descending = false;
  /// Block lists: tiles to visit, [n_b, n_h, q_tiles, k_tiles]. Empty: every tile with a visible
  /// pair.
  std::vector<std::uint8_t> listed;
  /// Rows that gates of scope warp judge together: 64 in kernels whose instructions take so many.
  int warp_rows = kWarpRows;
  /// Visited tiles that share a running maximum, relative to which e4m3 weights are rounded.
  int step_tiles = 1;
};

/// A tile, as a gate rule sees it.
struct TileIndex {
  int h = 0, b = 0, i = 0, j = 0, q0 = 0, q1 = 0, k0 = 0, k1 = 0;
};

enum class Scope { kWarp, kTile };

struct GateRule {
  Scope scope = Scope::kTile;
  bool skips_exp = false;  ///< false: only the product with V is skipped
  std::function<bool(double tile_max, double gap, const TileIndex& tile)> skip;
  /// Distance of the statistics from the threshold, natural units: how near the decision is to
  /// flipping.
  std::function<double(double tile_max, double gap, const TileIndex& tile)> margin;
};

/// 0 not visited, 1 visited, 2 gated (by every scope that has rows), [n_b, n_h, q_tiles, k_tiles];
/// for each tile the smallest margin of its decisions (infinity where there was none); `visible`
/// tiles in all.
struct TileDecisions {
  std::vector<std::uint8_t> code;
  std::vector<double> margin;
  std::int64_t visible = 0;
};
TileDecisions oracle_tiles(const Problem& problem, const Tiling& tiling,
                           const std::optional<GateRule>& gate);

/// o [n_b, n_h, n_q, d], lse [n_b, n_h, n_q]; row_margin: for warp gates, whose decisions a tile
/// mask is too coarse to carry and which are simulated, the smallest margin met by the row; else
/// infinity; reach, like o: how far o may be off where an e4m3 weight is so near the middle of two
/// codes that the rounding of its logit decides which of them it becomes, else 0.
struct Output {
  std::vector<double> o, lse, row_margin, reach;
};

/// Attention under a reported tile mask (codes as above; `tile_mask` must have been reported under
/// `tiling`).
Output oracle_attention(const Problem& problem, const Tiling& tiling,
                        const std::optional<GateRule>& gate,
                        const std::vector<std::uint8_t>& tile_mask);

/// Plain dense attention of the problem's mask and score, no tiles at all.
Output oracle_dense(const Problem& problem);

}  // namespace lacuna::oracle
