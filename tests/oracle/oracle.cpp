#include "tests/oracle/oracle.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace lacuna::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Grid {
  int q_tiles, k_tiles;
  std::size_t tile(int b, int h, int n_h, int i, int j) const {
    return ((static_cast<std::size_t>(b) * static_cast<std::size_t>(n_h) +
             static_cast<std::size_t>(h)) *
                static_cast<std::size_t>(q_tiles) +
            static_cast<std::size_t>(i)) *
               static_cast<std::size_t>(k_tiles) +
           static_cast<std::size_t>(j);
  }
};

Grid grid_of(const Problem& p, const Tiling& t) {
  return {(p.n_q + t.tile_q - 1) / t.tile_q, (p.n_k + t.tile_k - 1) / t.tile_k};
}

std::size_t row_of(const Problem& p, int b, int h, int q) {
  return (static_cast<std::size_t>(b) * static_cast<std::size_t>(p.n_h) +
          static_cast<std::size_t>(h)) *
             static_cast<std::size_t>(p.n_q) +
         static_cast<std::size_t>(q);
}

const double* key_row(const Problem& p, const std::vector<double>& tensor, int b, int h, int k) {
  const int h_kv = h / (p.n_h / p.n_h_kv);
  const auto row = (static_cast<std::size_t>(b) * static_cast<std::size_t>(p.n_h_kv) +
                    static_cast<std::size_t>(h_kv)) *
                       static_cast<std::size_t>(p.n_k) +
                   static_cast<std::size_t>(k);
  return tensor.data() + row * static_cast<std::size_t>(p.d);
}

bool visible(const Problem& p, int q, int k, int h, int b) { return !p.mask || p.mask(q, k, h, b); }

double logit(const Problem& p, int q, int k, int h, int b) {
  const double* a = p.q.data() + row_of(p, b, h, q) * static_cast<std::size_t>(p.d);
  const double* c = key_row(p, p.k, b, h, k);
  double sum = 0;
  for (int x = 0; x < p.d; ++x) sum += a[x] * c[x];
  const double s = sum * p.scale;
  return p.score ? p.score(s, q, k, h, b) : s;
}

TileIndex tile_index(const Problem& p, const Tiling& t, int b, int h, int i, int j) {
  TileIndex x;
  x.b = b, x.h = h, x.i = i, x.j = j;
  x.q0 = i * t.tile_q, x.q1 = std::min(x.q0 + t.tile_q, p.n_q) - 1;
  x.k0 = j * t.tile_k, x.k1 = std::min(x.k0 + t.tile_k, p.n_k) - 1;
  return x;
}

bool has_visible_pair(const Problem& p, const TileIndex& x) {
  for (int q = x.q0; q <= x.q1; ++q)
    for (int k = x.k0; k <= x.k1; ++k)
      if (visible(p, q, k, x.h, x.b)) return true;
  return false;
}

/// Largest visible logit of a row in a tile; -inf if there is none. A NaN logit hides nothing but
/// itself.
double row_max(const Problem& p, const TileIndex& x, int q) {
  double m = -kInfinity;
  for (int k = x.k0; k <= x.k1; ++k)
    if (visible(p, q, k, x.h, x.b)) m = std::fmax(m, logit(p, q, k, x.h, x.b));
  return m;
}

/// The state of one row of tiles while its gate is simulated.
struct RowState {
  std::vector<double> running_max;  ///< for each row of the tile
  bool first = true;
};

struct ScopeVerdict {
  bool has_rows = false, skip = false;
  double margin = kInfinity;
};

ScopeVerdict judge_scope(const GateRule& gate, const TileIndex& x,
                         const std::vector<double>& maxima, const RowState& state, int first_row,
                         int rows) {
  ScopeVerdict verdict;
  double tile_max = -kInfinity, gap = -kInfinity;
  const int count = x.q1 - x.q0 + 1;
  for (int r = first_row; r < std::min(first_row + rows, count); ++r) {
    verdict.has_rows = true;
    const double m = maxima[static_cast<std::size_t>(r)];
    if (m == -kInfinity) continue;
    tile_max = std::max(tile_max, m);
    gap = std::max(gap, m - state.running_max[static_cast<std::size_t>(r)]);
  }
  if (!verdict.has_rows) return verdict;
  verdict.skip = !state.first && gate.skip(tile_max, gap, x);
  if (!state.first) verdict.margin = gate.margin(tile_max, gap, x);
  return verdict;
}

/// What happened to each scope of one tile: verdicts in row order.
std::vector<ScopeVerdict> judge_tile(const Problem& p, const Tiling& t, const GateRule& gate,
                                     const TileIndex& x, RowState& state) {
  const int count = x.q1 - x.q0 + 1;
  std::vector<double> maxima(static_cast<std::size_t>(count));
  for (int r = 0; r < count; ++r) maxima[static_cast<std::size_t>(r)] = row_max(p, x, x.q0 + r);
  const int rows = gate.scope == Scope::kWarp ? kWarpRows : t.tile_q;
  std::vector<ScopeVerdict> verdicts;
  for (int first_row = 0; first_row < t.tile_q; first_row += rows) {
    ScopeVerdict verdict = judge_scope(gate, x, maxima, state, first_row, rows);
    const bool keeps_maximum = verdict.skip && gate.skips_exp;
    for (int r = first_row; r < std::min(first_row + rows, count) && !keeps_maximum; ++r) {
      double& running = state.running_max[static_cast<std::size_t>(r)];
      running = std::max(running, maxima[static_cast<std::size_t>(r)]);
    }
    verdicts.push_back(verdict);
  }
  state.first = false;
  return verdicts;
}

/// Calls `work(b, h, i)` for every row of tiles, on all hardware threads.
void for_each_row_of_tiles(const Problem& p, const Grid& grid,
                           const std::function<void(int, int, int)>& work) {
  std::atomic<int> next{0};
  const int total = p.n_b * p.n_h * grid.q_tiles;
  const auto loop = [&] {
    for (int x = next++; x < total; x = next++)
      work(x / (p.n_h * grid.q_tiles), x / grid.q_tiles % p.n_h, x % grid.q_tiles);
  };
  std::vector<std::thread> threads;
  for (unsigned n = 1; n < std::thread::hardware_concurrency(); ++n) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
}

int walked(const Tiling& t, const Grid& grid, int step) {
  return t.descending ? grid.k_tiles - 1 - step : step;
}

/// Weight of each key for one query row: 0 none, 1 denominator only, 2 both.
struct KeyUse {
  std::vector<std::uint8_t> use;
  explicit KeyUse(int n_k) : use(static_cast<std::size_t>(n_k), 0) {}
  void set(const TileIndex& x, std::uint8_t value) {
    std::fill(use.begin() + x.k0, use.begin() + x.k1 + 1, value);
  }
};

void attend_row(const Problem& p, int b, int h, int q, const KeyUse& keys, Output& out) {
  std::vector<double> s(static_cast<std::size_t>(p.n_k), -kInfinity);
  double m = -kInfinity;
  bool any = false, is_nan = false;
  for (int k = 0; k < p.n_k; ++k) {
    if (keys.use[static_cast<std::size_t>(k)] == 0 || !visible(p, q, k, h, b)) continue;
    const double x = logit(p, q, k, h, b);
    any = true;
    is_nan = is_nan || std::isnan(x);
    s[static_cast<std::size_t>(k)] = x;
    m = std::fmax(m, x);
  }
  const std::size_t row = row_of(p, b, h, q);
  double* o = out.o.data() + row * static_cast<std::size_t>(p.d);
  if (is_nan) {
    std::fill(o, o + p.d, std::numeric_limits<double>::quiet_NaN());
    out.lse[row] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!any || m == -kInfinity) return;  // empty row: o = 0, lse = -inf
  double l = 0;
  for (int k = 0; k < p.n_k; ++k) {
    const double weight = std::exp(s[static_cast<std::size_t>(k)] - m);
    if (s[static_cast<std::size_t>(k)] == -kInfinity) continue;
    l += weight;
    if (keys.use[static_cast<std::size_t>(k)] != 2) continue;
    const double* v = key_row(p, p.v, b, h, k);
    for (int x = 0; x < p.d; ++x) o[x] += weight * v[x];
  }
  for (int x = 0; x < p.d; ++x) o[x] /= l;
  out.lse[row] = m + std::log(l);
}

Output empty_output(const Problem& p) {
  const std::size_t rows = row_of(p, p.n_b, 0, 0);
  Output out;
  out.o.assign(rows * static_cast<std::size_t>(p.d), 0.0);
  out.lse.assign(rows, -kInfinity);
  out.row_margin.assign(rows, kInfinity);
  return out;
}

/// Under a warp gate: simulates the row of tiles and attends each warp's rows with its own keys.
void attend_warps(const Problem& p, const Tiling& t, const GateRule& gate,
                  const std::vector<std::uint8_t>& tile_mask, int b, int h, int i, Output& out) {
  const Grid grid = grid_of(p, t);
  const auto warps = static_cast<std::size_t>((t.tile_q + kWarpRows - 1) / kWarpRows);
  std::vector<KeyUse> keys(warps, KeyUse(p.n_k));
  std::vector<double> margins(warps, kInfinity);
  RowState state{std::vector<double>(static_cast<std::size_t>(t.tile_q), -kInfinity), true};
  for (int step = 0; step < grid.k_tiles; ++step) {
    const TileIndex x = tile_index(p, t, b, h, i, walked(t, grid, step));
    if (tile_mask[grid.tile(b, h, p.n_h, i, x.j)] == 0) continue;
    const auto verdicts = judge_tile(p, t, gate, x, state);
    for (std::size_t w = 0; w < warps; ++w) {
      const std::uint8_t gated = gate.skips_exp ? 0 : 1;
      keys[w].set(x, verdicts[w].skip ? gated : 2);
      margins[w] = std::min(margins[w], verdicts[w].margin);
    }
  }
  for (int q = i * t.tile_q; q < std::min((i + 1) * t.tile_q, p.n_q); ++q) {
    const auto warp = static_cast<std::size_t>((q - i * t.tile_q) / kWarpRows);
    attend_row(p, b, h, q, keys[warp], out);
    out.row_margin[row_of(p, b, h, q)] = margins[warp];
  }
}

}  // namespace

TileDecisions oracle_tiles(const Problem& p, const Tiling& t, const std::optional<GateRule>& gate) {
  const Grid grid = grid_of(p, t);
  TileDecisions out;
  out.code.assign(grid.tile(p.n_b, 0, p.n_h, 0, 0), 0);
  out.margin.assign(out.code.size(), kInfinity);
  std::atomic<std::int64_t> visible_tiles{0};
  for_each_row_of_tiles(p, grid, [&](int b, int h, int i) {
    RowState state{std::vector<double>(static_cast<std::size_t>(t.tile_q), -kInfinity), true};
    for (int step = 0; step < grid.k_tiles; ++step) {
      const TileIndex x = tile_index(p, t, b, h, i, walked(t, grid, step));
      const std::size_t at = grid.tile(b, h, p.n_h, i, x.j);
      const bool seen = has_visible_pair(p, x);
      visible_tiles += seen ? 1 : 0;
      if (t.listed.empty() ? !seen : t.listed[at] == 0) continue;
      out.code[at] = 1;
      if (!gate) continue;
      bool all_skip = true;
      for (const ScopeVerdict& verdict : judge_tile(p, t, *gate, x, state)) {
        all_skip = all_skip && (verdict.skip || !verdict.has_rows);
        out.margin[at] = std::min(out.margin[at], verdict.margin);
      }
      if (all_skip) out.code[at] = 2;
    }
  });
  out.visible = visible_tiles;
  return out;
}

Output oracle_attention(const Problem& p, const Tiling& t, const std::optional<GateRule>& gate,
                        const std::vector<std::uint8_t>& tile_mask) {
  const Grid grid = grid_of(p, t);
  Output out = empty_output(p);
  for_each_row_of_tiles(p, grid, [&](int b, int h, int i) {
    if (gate && gate->scope == Scope::kWarp)
      return attend_warps(p, t, *gate, tile_mask, b, h, i, out);
    KeyUse keys(p.n_k);
    for (int j = 0; j < grid.k_tiles; ++j) {
      const TileIndex x = tile_index(p, t, b, h, i, j);
      const std::uint8_t code = tile_mask[grid.tile(b, h, p.n_h, i, j)];
      const std::uint8_t gated = gate && !gate->skips_exp ? 1 : 0;
      keys.set(x, code == 1 ? 2 : code == 2 ? gated : 0);
    }
    for (int q = i * t.tile_q; q < std::min((i + 1) * t.tile_q, p.n_q); ++q)
      attend_row(p, b, h, q, keys, out);
  });
  return out;
}

Output oracle_dense(const Problem& p) {
  Output out = empty_output(p);
  KeyUse keys(p.n_k);
  std::fill(keys.use.begin(), keys.use.end(), std::uint8_t{2});
  for_each_row_of_tiles(p, {p.n_q, 1},
                        [&](int b, int h, int q) { attend_row(p, b, h, q, keys, out); });
  return out;
}

}  // namespace lacuna::oracle
