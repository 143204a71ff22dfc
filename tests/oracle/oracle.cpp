#include "tests/oracle/oracle.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/oracle/access.hpp"
#include "tests/oracle/quantise.hpp"

namespace lacuna::oracle {
namespace {

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
  return {tiles_of(p.n_q, t.tile_q), tiles_of(p.n_k, t.tile_k)};
}

double scaled_product(const Problem& p, int q, int k, int h, int b) {
  const std::size_t row = query_index(p, b, h, q);
  double sum = dot(row_at(p.q, row, p.d), row_at(p.k, key_index(p, b, h, k), p.d), p.d);
  if (!p.row_bias.empty()) sum += p.row_bias[row];
  if (!p.column_bias.empty()) sum += p.column_bias[flat_row(b, p.n_h, h, p.n_k, k)];
  return sum * p.scale;
}

double logit(const Problem& p, int q, int k, int h, int b) {
  const double s = scaled_product(p, q, k, h, b);
  return p.score ? p.score(s, q, k, h, b) : s;
}

/// Is the logit of a pair that a row sees, of keys `first` to `last`, one that wavers?
bool has_wavering_pair(const Problem& p, int b, int h, int q, int first, int last) {
  for (int k = first; p.wavers && k <= last; ++k)
    if (visible(p, q, k, h, b) && p.wavers(scaled_product(p, q, k, h, b), q, k, h, b)) return true;
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

/// The state of one work tile while its gate is simulated.
struct RowState {
  std::vector<double> running_max;  ///< for each row of the tile
  bool first = true;
  bool wavers = false;  ///< nothing is known from the last tile on
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
  if (!state.first) verdict.margin = state.wavers ? 0 : gate.margin(tile_max, gap, x);
  return verdict;
}

/// What happened to each scope of one tile: verdicts in row order.
std::vector<ScopeVerdict> judge_tile(const Problem& p, const Tiling& t, const GateRule& gate,
                                     const TileIndex& x, RowState& state) {
  const int count = x.q1 - x.q0 + 1;
  std::vector<double> maxima(static_cast<std::size_t>(count));
  for (int r = 0; r < count; ++r) {
    maxima[static_cast<std::size_t>(r)] = row_max(p, x, x.q0 + r);
    state.wavers = state.wavers || has_wavering_pair(p, x.b, x.h, x.q0 + r, x.k0, x.k1);
  }
  const int rows = gate.scope == Scope::kWarp ? t.warp_rows : t.tile_q;
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

/// Logits of the keys a row uses; -inf elsewhere. NaN if one of them is.
struct RowLogits {
  std::vector<double> s;
  double largest = -kInfinity;
  bool is_nan = false;
};

RowLogits logits_of(const Problem& p, int b, int h, int q, const KeyUse& keys) {
  RowLogits out;
  out.s.assign(static_cast<std::size_t>(p.n_k), -kInfinity);
  for (int k = 0; k < p.n_k; ++k) {
    if (keys.use[static_cast<std::size_t>(k)] == 0 || !visible(p, q, k, h, b)) continue;
    const double x = logit(p, q, k, h, b);
    out.is_nan = out.is_nan || std::isnan(x);
    out.s[static_cast<std::size_t>(k)] = x;
    out.largest = std::fmax(out.largest, x);
  }
  return out;
}

/// First keys of the tiles of which a row uses any, in the order of the walk.
std::vector<int> used_tiles(const Problem& p, const Tiling& t, const KeyUse& keys) {
  std::vector<int> tiles;
  const int k_tiles = tiles_of(p.n_k, t.tile_k);
  for (int n = 0; n < k_tiles; ++n) {
    const int k0 = (t.descending ? k_tiles - 1 - n : n) * t.tile_k;
    const auto begin = keys.use.begin() + k0;
    const auto end = keys.use.begin() + std::min(k0 + t.tile_k, p.n_k);
    if (std::any_of(begin, end, [](std::uint8_t use) { return use != 0; })) tiles.push_back(k0);
  }
  return tiles;
}

/// How far a device's weight may be off, as a share of it: logits in f32 and an exponential to
/// 2^-22.
double weight_error(double logit, double reference) {
  return 1e-6 * (1 + std::abs(logit) + std::abs(reference));
}

/// For each key, what its weight is multiplied by before it meets V: 1, or what rounding to e4m3
/// relative to the running maximum of its step makes of it. `reach`: by how much another rounding
/// of the same weight, which is near the middle of two codes, would change that.
struct WeightFactors {
  std::vector<double> factor, reach;
};

WeightFactors weight_factors(const Problem& p, const Tiling& t, const RowLogits& row,
                             const KeyUse& keys) {
  WeightFactors out{std::vector<double>(row.s.size(), 1.0), std::vector<double>(row.s.size(), 0.0)};
  if (!p.e4m3_weights) return out;
  const std::vector<int> tiles = used_tiles(p, t, keys);
  const auto step_tiles = static_cast<std::size_t>(t.step_tiles);
  double running = -kInfinity;
  for (std::size_t first = 0; first < tiles.size(); first += step_tiles) {
    const std::size_t last = std::min(first + step_tiles, tiles.size());
    const auto for_each_key = [&](auto body) {
      for (std::size_t n = first; n < last; ++n) {
        for (int k = tiles[n]; k < std::min(tiles[n] + t.tile_k, p.n_k); ++k)
          body(static_cast<std::size_t>(k));
      }
    };
    for_each_key([&](std::size_t k) { running = std::max(running, row.s[k]); });
    for_each_key([&](std::size_t k) {
      const double weight = 448 * std::exp(row.s[k] - running);
      if (!(weight > 0)) return;
      const double code = round_e4m3(weight), error = weight_error(row.s[k], running);
      out.factor[k] = code / weight;
      out.reach[k] = std::max(round_e4m3(weight * (1 + error)) - code,
                              code - round_e4m3(weight * std::max(1 - error, 0.0))) /
                     weight;
    });
  }
  return out;
}

void attend_row(const Problem& p, const Tiling& t, int b, int h, int q, const KeyUse& keys,
                Output& out) {
  const RowLogits logits = logits_of(p, b, h, q, keys);
  const std::size_t row = query_index(p, b, h, q);
  double* o = out.o.data() + row * static_cast<std::size_t>(p.value_dim());
  if (has_wavering_pair(p, b, h, q, 0, p.n_k - 1)) out.row_margin[row] = -1;
  if (logits.is_nan) {
    std::fill(o, o + p.value_dim(), std::numeric_limits<double>::quiet_NaN());
    out.lse[row] =
        p.weighting != Weighting::kSoftmax ? 0 : std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (p.weighting != Weighting::kSoftmax) {
    out.lse[row] = 0;
    for (int k = 0; k < p.n_k; ++k) {
      if (keys.use[static_cast<std::size_t>(k)] == 0 || !visible(p, q, k, h, b)) continue;
      const double s = logits.s[static_cast<std::size_t>(k)];
      const double weight = p.weighting == Weighting::kLogit ? s : 1 / (1 + std::exp(-s));
      const double* v = row_at(p.v, key_index(p, b, h, k), p.value_dim());
      for (int c = 0; c < p.value_dim() && weight != 0; ++c) o[c] += weight * v[c];
    }
    return;
  }
  const double sink = p.sink ? p.sink(q, h, b) : -kInfinity;
  const double unit = p.lse_is_base_2 ? std::log(2.0) : 1.0;
  if (logits.largest == -kInfinity) {  // empty row: o = 0
    out.lse[row] = sink / unit;
    return;
  }
  const double largest = std::max(logits.largest, sink);
  const WeightFactors rounded = weight_factors(p, t, logits, keys);
  double* reach = out.reach.data() + row * static_cast<std::size_t>(p.value_dim());
  double l = std::exp(sink - largest);
  for (int k = 0; k < p.n_k; ++k) {
    const auto x = static_cast<std::size_t>(k);
    if (logits.s[x] == -kInfinity) continue;
    const double weight = std::exp(logits.s[x] - largest);
    l += weight;
    if (keys.use[x] != 2) continue;
    const double* v = row_at(p.v, key_index(p, b, h, k), p.value_dim());
    const double factor = weight * rounded.factor[x], error = weight * rounded.reach[x];
    for (int c = 0; c < p.value_dim(); ++c) o[c] += factor * v[c];
    for (int c = 0; c < p.value_dim() && error != 0; ++c) reach[c] += error * std::abs(v[c]);
  }
  for (int c = 0; c < p.value_dim(); ++c) o[c] /= l, reach[c] /= l;
  out.lse[row] = (largest + std::log(l)) / unit;
}

Output empty_output(const Problem& p) {
  const std::size_t rows = query_index(p, p.n_b, 0, 0);
  Output out;
  out.o.assign(rows * static_cast<std::size_t>(p.value_dim()), 0.0);
  out.reach.assign(out.o.size(), 0.0);
  out.lse.assign(rows, -kInfinity);
  out.row_margin.assign(rows, kInfinity);
  return out;
}

/// Under a warp gate: simulates the work tile and attends each warp's rows with its own keys.
void attend_warps(const Problem& p, const Tiling& t, const GateRule& gate,
                  const std::vector<std::uint8_t>& tile_mask, int b, int h, int i, Output& out) {
  const Grid grid = grid_of(p, t);
  const auto warps = static_cast<std::size_t>((t.tile_q + t.warp_rows - 1) / t.warp_rows);
  std::vector<KeyUse> keys(warps, KeyUse(p.n_k));
  std::vector<double> margins(warps, kInfinity);
  RowState state{std::vector<double>(static_cast<std::size_t>(t.tile_q), -kInfinity)};
  for (int step = 0; step < grid.k_tiles; ++step) {
    const TileIndex x = tile_index(p, t.tile_q, t.tile_k, b, h, i, walked(t, grid, step));
    if (tile_mask[grid.tile(b, h, p.n_h, i, x.j)] == 0) continue;
    const auto verdicts = judge_tile(p, t, gate, x, state);
    for (std::size_t w = 0; w < warps; ++w) {
      const std::uint8_t gated = gate.skips_exp ? 0 : 1;
      keys[w].set(x, verdicts[w].skip ? gated : 2);
      margins[w] = std::min(margins[w], verdicts[w].margin);
    }
  }
  for (int q = i * t.tile_q; q < std::min((i + 1) * t.tile_q, p.n_q); ++q) {
    const auto warp = static_cast<std::size_t>((q - i * t.tile_q) / t.warp_rows);
    attend_row(p, t, b, h, q, keys[warp], out);
    double& margin = out.row_margin[query_index(p, b, h, q)];
    margin = std::min(margin, margins[warp]);
  }
}

}  // namespace

void for_each_index(int count, const std::function<void(int)>& work) {
  std::atomic<int> next{0};
  const auto loop = [&] {
    for (int n = next++; n < count; n = next++) work(n);
  };
  std::vector<std::thread> threads;
  for (unsigned n = 1; n < std::thread::hardware_concurrency(); ++n) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
}

void for_each_work_tile(const Problem& p, int q_tiles,
                        const std::function<void(int, int, int)>& work) {
  for_each_index(p.n_b * p.n_h * q_tiles,
                 [&](int n) { work(n / (p.n_h * q_tiles), n / q_tiles % p.n_h, n % q_tiles); });
}

TileDecisions oracle_tiles(const Problem& p, const Tiling& t, const std::optional<GateRule>& gate) {
  const Grid grid = grid_of(p, t);
  TileDecisions out;
  out.code.assign(grid.tile(p.n_b, 0, p.n_h, 0, 0), 0);
  out.margin.assign(out.code.size(), kInfinity);
  std::atomic<std::int64_t> visible_tiles{0};
  for_each_work_tile(p, grid.q_tiles, [&](int b, int h, int i) {
    RowState state{std::vector<double>(static_cast<std::size_t>(t.tile_q), -kInfinity)};
    for (int step = 0; step < grid.k_tiles; ++step) {
      const TileIndex x = tile_index(p, t.tile_q, t.tile_k, b, h, i, walked(t, grid, step));
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
  for_each_work_tile(p, grid.q_tiles, [&](int b, int h, int i) {
    if (gate && gate->scope == Scope::kWarp)
      return attend_warps(p, t, *gate, tile_mask, b, h, i, out);
    KeyUse keys(p.n_k);
    for (int j = 0; j < grid.k_tiles; ++j) {
      const TileIndex x = tile_index(p, t.tile_q, t.tile_k, b, h, i, j);
      const std::uint8_t code = tile_mask[grid.tile(b, h, p.n_h, i, j)];
      const std::uint8_t gated = gate && !gate->skips_exp ? 1 : 0;
      keys.set(x, code == 1 ? 2 : code == 2 ? gated : 0);
    }
    for (int q = i * t.tile_q; q < std::min((i + 1) * t.tile_q, p.n_q); ++q)
      attend_row(p, t, b, h, q, keys, out);
  });
  return out;
}

Output oracle_dense(const Problem& p) {
  Output out = empty_output(p);
  KeyUse keys(p.n_k);
  std::fill(keys.use.begin(), keys.use.end(), std::uint8_t{2});
  const Tiling whole{1, std::max(p.n_k, 1), false, {}};
  for_each_work_tile(p, p.n_q,
                     [&](int b, int h, int q) { attend_row(p, whole, b, h, q, keys, out); });
  return out;
}

}  // namespace lacuna::oracle
