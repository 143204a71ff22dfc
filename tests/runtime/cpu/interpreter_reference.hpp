// A naive reference for the interpreter's tests: fp64, one query token at a time, from the
// definitions of compiler/ir/program.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace lacuna {

struct Shape {
  int b = 1, h = 1, h_kv = 1, n_q = 0, n_k = 0, d = 0;
};

struct TileBounds {
  int i, j, q0, q1, k0, k1;
};

struct ReferenceGate {
  int scope_rows = 0;  ///< 16, or the tile's
  bool skips_exp = false;
  std::function<bool(double tile_max, double gap, int h, const TileBounds&)> skips = {};
};

struct ReferenceMethod {
  int tile_q = 0, tile_k = 0;
  bool descending = false;
  std::function<bool(int q, int k, int h, int b)> mask = {};               ///< empty: all visible
  std::function<double(double s, int q, int k, int h, int b)> score = {};  ///< empty: s
  /// Tiles to visit; empty: those with a visible pair.
  std::function<bool(int h, int i, int j)> listed = {};
  std::optional<ReferenceGate> gate = {};
};

struct ReferenceResult {
  std::vector<double> o, lse;       ///< [b, h, n_q, d], [b, h, n_q]
  std::vector<std::uint8_t> tiles;  ///< [b, h, q_tiles, k_tiles]
  std::vector<int> counts;          ///< [b, h, q_tiles, 3]
};

/// q, k, v: contiguous [b, h(_kv), n, d].
ReferenceResult reference_attention(const Shape& shape, const ReferenceMethod& method,
                                    const std::vector<float>& q, const std::vector<float>& k,
                                    const std::vector<float>& v);

}  // namespace lacuna
