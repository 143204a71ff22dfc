// Rows, tiles and visibility of a Problem: what every part of the oracle asks for.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/oracle/oracle.hpp"

namespace lacuna::oracle {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The row of a tensor [n_b, heads, tokens] as one index.
inline std::size_t flat_row(int b, int heads, int h, int tokens, int n) {
  return (static_cast<std::size_t>(b) * static_cast<std::size_t>(heads) +
          static_cast<std::size_t>(h)) *
             static_cast<std::size_t>(tokens) +
         static_cast<std::size_t>(n);
}

inline std::size_t query_index(const Problem& p, int b, int h, int q) {
  return flat_row(b, p.n_h, h, p.n_q, q);
}

/// KV head of a query head.
inline int kv_head(const Problem& p, int h) { return h / (p.n_h / p.n_h_kv); }

inline std::size_t key_index(const Problem& p, int b, int h, int k) {
  return flat_row(b, p.n_h_kv, kv_head(p, h), p.n_k, k);
}

inline const double* row_at(const std::vector<double>& tensor, std::size_t row, int d) {
  return tensor.data() + row * static_cast<std::size_t>(d);
}

/// In four sums, which do not wait for each other: most of the oracle's time goes into this.
inline double dot(const double* a, const double* b, int d) {
  double sums[4] = {};
  int x = 0;
  for (; x + 4 <= d; x += 4)
    for (int n = 0; n < 4; ++n) sums[n] += a[x + n] * b[x + n];
  for (; x < d; ++x) sums[0] += a[x] * b[x];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

inline bool visible(const Problem& p, int q, int k, int h, int b) {
  return !p.mask || p.mask(q, k, h, b);
}

inline int tiles_of(int tokens, int tile) { return (tokens + tile - 1) / tile; }

inline TileIndex tile_index(const Problem& p, int tile_q, int tile_k, int b, int h, int i, int j) {
  TileIndex x;
  x.b = b, x.h = h, x.i = i, x.j = j;
  x.q0 = i * tile_q, x.q1 = std::min(x.q0 + tile_q, p.n_q) - 1;
  x.k0 = j * tile_k, x.k1 = std::min(x.k0 + tile_k, p.n_k) - 1;
  return x;
}

inline bool has_visible_pair(const Problem& p, const TileIndex& x) {
  for (int q = x.q0; q <= x.q1; ++q)
    for (int k = x.k0; k <= x.k1; ++k)
      if (visible(p, q, k, x.h, x.b)) return true;
  return false;
}

/// Calls `work(n)` for n = 0 .. count - 1, on all hardware threads.
void for_each_index(int count, const std::function<void(int)>& work);

/// Calls `work(b, h, i)` for every work tile.
void for_each_work_tile(const Problem& p, int q_tiles,
                        const std::function<void(int, int, int)>& work);

}  // namespace lacuna::oracle
