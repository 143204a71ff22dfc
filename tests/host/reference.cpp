#include "tests/host/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace lacuna::host_tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Row {
  double max = -kInfinity, sum = 0;
  std::vector<double> o;
};

/// One work tile under way.
struct Walk {
  const Program& program;
  const Attend& attend;
  const Inputs& in;
  Bindings bindings;
  int b, h, i, q0, q1;
  std::vector<Row> rows;
  std::vector<std::vector<double>> logits;  ///< of the tile at hand; -inf: not visible
  bool first = true;
};

void enter_tile(Walk& w, int j) {
  const Sizes& s = w.in.sizes;
  w.bindings.set(Variable::kI, w.i);
  w.bindings.set(Variable::kJ, j);
  w.bindings.set(Variable::kQ0, w.q0);
  w.bindings.set(Variable::kQ1, w.q1);
  w.bindings.set(Variable::kK0, j * w.attend.tile_k);
  w.bindings.set(Variable::kK1, std::min((j + 1) * w.attend.tile_k, s.n_k) - 1);
}

bool visible(Walk& w, int q, int k) {
  w.bindings.set(Variable::kQ, q);
  w.bindings.set(Variable::kK, k);
  return w.attend.mask.empty() || evaluate(w.attend.mask, w.bindings).boolean;
}

double logit(Walk& w, int q, int k) {
  const Sizes& s = w.in.sizes;
  const int h_kv = w.h / (s.n_h / s.n_h_kv);
  const auto q_row = static_cast<std::size_t>(((w.b * s.n_h + w.h) * s.n_q + q) * s.d);
  const auto k_row = static_cast<std::size_t>(((w.b * s.n_h_kv + h_kv) * s.n_k + k) * s.d);
  double dot = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(s.d); ++c)
    dot += static_cast<double>(w.in.q[q_row + c]) * static_cast<double>(w.in.k[k_row + c]);
  dot *= static_cast<double>(w.attend.scale);
  if (w.attend.score.empty()) return dot;
  w.bindings.set(Variable::kQ, q);
  w.bindings.set(Variable::kK, k);
  w.bindings.set(Variable::kS, static_cast<float>(dot));
  return static_cast<double>(evaluate(w.attend.score, w.bindings).f32);
}

bool fill_logits(Walk& w, int j, bool masked) {
  const int k0 = j * w.attend.tile_k;
  const int k1 = std::min(k0 + w.attend.tile_k, w.in.sizes.n_k) - 1;
  bool any = false;
  w.logits.assign(static_cast<std::size_t>(w.q1 - w.q0 + 1), {});
  for (int q = w.q0; q <= w.q1; ++q)
    for (int k = k0; k <= k1; ++k) {
      const bool seen = !masked || visible(w, q, k);
      any = any || seen;
      w.logits[static_cast<std::size_t>(q - w.q0)].push_back(seen ? logit(w, q, k) : -kInfinity);
    }
  return any;
}

bool gate_skips(Walk& w, std::size_t begin, std::size_t end) {
  double tile_max = -kInfinity, gap = -kInfinity;
  for (std::size_t r = begin; r < end; ++r) {
    double max = -kInfinity;
    for (const double s : w.logits[r]) max = std::fmax(max, s);
    if (max == -kInfinity) continue;
    tile_max = std::max(tile_max, max);
    gap = std::max(gap, max - w.rows[r].max);
  }
  w.bindings.set(Variable::kTileMax, static_cast<float>(tile_max));
  w.bindings.set(Variable::kGap, static_cast<float>(gap));
  const Gate& gate = *w.attend.gate;
  const bool exempt = !gate.exempt.empty() && evaluate(gate.exempt, w.bindings).boolean;
  return evaluate(gate.skip, w.bindings).boolean && !exempt;
}

void absorb(Walk& w, std::size_t r, int j, bool with_product) {
  Row& row = w.rows[r];
  const Sizes& s = w.in.sizes;
  const int h_kv = w.h / (s.n_h / s.n_h_kv);
  double max = row.max;
  for (const double x : w.logits[r]) max = std::fmax(max, x);
  const double factor = max == -kInfinity ? 1 : std::exp(row.max - max);
  row.max = max;
  row.sum *= factor;
  for (double& x : row.o) x *= factor;
  for (std::size_t n = 0; n < w.logits[r].size(); ++n) {
    if (w.logits[r][n] == -kInfinity) continue;
    const double p = std::exp(w.logits[r][n] - max);
    row.sum += p;
    const int k = j * w.attend.tile_k + static_cast<int>(n);
    const auto v_row = static_cast<std::size_t>(((w.b * s.n_h_kv + h_kv) * s.n_k + k) * s.d);
    for (std::size_t c = 0; c < row.o.size() && with_product; ++c)
      row.o[c] += p * static_cast<double>(w.in.v[v_row + c]);
  }
}

/// The tile's code: 1 visited, 2 gated in every scope.
std::uint8_t visit(Walk& w, int j, bool masked) {
  fill_logits(w, j, masked);
  const std::size_t count = w.rows.size();
  const bool by_warp = w.attend.gate && w.attend.gate->scope == GateScope::kWarp;
  const std::size_t step = by_warp ? 16 : count;
  bool all = w.attend.gate.has_value() && !w.first;
  for (std::size_t begin = 0; begin < count; begin += step) {
    const std::size_t end = std::min(begin + step, count);
    const bool skip = w.attend.gate && !w.first && gate_skips(w, begin, end);
    all = all && skip;
    if (skip && w.attend.gate->skips_exp) continue;
    for (std::size_t r = begin; r < end; ++r) absorb(w, r, j, !skip);
  }
  w.first = false;
  return all ? 2 : 1;
}

/// log(exp(a) + exp(b))
double log_add(double a, double b) {
  const double larger = std::fmax(a, b);
  return larger == -kInfinity ? larger
                              : larger + std::log(std::exp(a - larger) + std::exp(b - larger));
}

void write(Walk& w, Outputs& out) {
  const Sizes& s = w.in.sizes;
  for (std::size_t r = 0; r < w.rows.size(); ++r) {
    const Row& row = w.rows[r];
    const auto index = static_cast<std::size_t>((w.b * s.n_h + w.h) * s.n_q + w.q0) + r;
    const double of_keys = row.sum == 0 ? -kInfinity : row.max + std::log(row.sum);
    double lse = of_keys;
    if (!w.attend.sink.empty()) {
      w.bindings.set(Variable::kQ, w.q0 + static_cast<int>(r));
      lse = log_add(lse, static_cast<double>(evaluate(w.attend.sink, w.bindings).f32));
    }
    out.lse[index] = w.attend.lse_base == LseBase::k2 ? lse / std::log(2.0) : lse;
    const double share = row.sum == 0 ? 0 : std::exp(of_keys - lse) / row.sum;
    for (std::size_t c = 0; c < row.o.size(); ++c)
      out.o[index * row.o.size() + c] = row.sum == 0 ? 0 : row.o[c] * share;
  }
}

void walk_row(Walk& w, Outputs& out) {
  const int n_j = tiles(w.in.sizes.n_k, w.attend.tile_k);
  const int n_i = tiles(w.in.sizes.n_q, w.attend.tile_q);
  const auto row = static_cast<std::size_t>((w.b * w.in.sizes.n_h + w.h) * n_i + w.i);
  const auto first = row * static_cast<std::size_t>(n_j);
  std::vector<std::pair<int, bool>> visits;  // tile, masked
  std::int32_t visible_tiles = 0;
  for (int j = 0; j < n_j; ++j) {
    enter_tile(w, j);
    if (!fill_logits(w, j, true)) continue;
    ++visible_tiles;
    if (w.in.list_counts.empty()) visits.emplace_back(j, true);
  }
  if (!w.in.list_counts.empty())
    for (int n = 0; n < w.in.list_counts[row]; ++n) {
      const std::int32_t entry = w.in.list_indices[first + static_cast<std::size_t>(n)];
      visits.emplace_back(entry & 0x7fffffff, entry < 0);
    }
  if (w.attend.order == TileOrder::kDescending) std::reverse(visits.begin(), visits.end());
  std::int32_t gated = 0;
  for (const auto& [j, masked] : visits) {
    enter_tile(w, j);
    const std::uint8_t code = visit(w, j, masked);
    out.tile_mask[first + static_cast<std::size_t>(j)] = code;
    gated += code == 2 ? 1 : 0;
  }
  write(w, out);
  out.counts[3 * row] = visible_tiles;
  out.counts[3 * row + 1] = static_cast<std::int32_t>(visits.size());
  out.counts[3 * row + 2] = gated;
}

}  // namespace

int tiles(int tokens, int tile) { return (tokens + tile - 1) / tile; }

Outputs reference(const Program& program, const Inputs& inputs) {
  const Attend& attend = attend_of(program);
  const Sizes& s = inputs.sizes;
  const int n_i = tiles(s.n_q, attend.tile_q), n_j = tiles(s.n_k, attend.tile_k);
  const auto rows = static_cast<std::size_t>(s.n_b * s.n_h * n_i);
  const auto queries = static_cast<std::size_t>(s.n_b * s.n_h * s.n_q);
  Outputs out{.o = std::vector<double>(queries * static_cast<std::size_t>(s.d)),
              .lse = std::vector<double>(queries),
              .counts = std::vector<std::int32_t>(rows * 3),
              .tile_mask = std::vector<std::uint8_t>(rows * static_cast<std::size_t>(n_j))};
  for (int b = 0; b < s.n_b; ++b)
    for (int h = 0; h < s.n_h; ++h)
      for (int i = 0; i < n_i; ++i) {
        const int q0 = i * attend.tile_q;
        const int q1 = std::min(q0 + attend.tile_q, s.n_q) - 1;
        Walk w{.program = program,
               .attend = attend,
               .in = inputs,
               .bindings = {},
               .b = b,
               .h = h,
               .i = i,
               .q0 = q0,
               .q1 = q1,
               .rows = {},
               .logits = {}};
        w.bindings.parameters = inputs.params;
        w.rows.resize(static_cast<std::size_t>(q1 - q0 + 1));
        for (Row& row : w.rows) row.o.resize(static_cast<std::size_t>(s.d));
        w.bindings.set(Variable::kNQ, s.n_q);
        w.bindings.set(Variable::kNK, s.n_k);
        w.bindings.set(Variable::kNH, s.n_h);
        w.bindings.set(Variable::kH, h);
        w.bindings.set(Variable::kB, b);
        w.bindings.set(Variable::kNI, n_i);
        w.bindings.set(Variable::kNJ, n_j);
        walk_row(w, out);
      }
  return out;
}

Inputs make_inputs(const Program& program, const Sizes& sizes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto fill = [&](int heads, int tokens, bool uneven) {
    std::vector<float> x(static_cast<std::size_t>(sizes.n_b * heads * tokens * sizes.d));
    for (std::size_t n = 0; n < x.size(); ++n) {
      const auto token = static_cast<int>(n) / sizes.d % std::max(tokens, 1);
      const float gain = uneven && token / attend_of(program).tile_k % 3 != 0 ? 0.25F : 1.0F;
      x[n] = round_to(program.dtype, normal(random) * gain);
    }
    return x;
  };
  Inputs in;
  in.sizes = sizes;
  in.q = fill(sizes.n_h, sizes.n_q, false);
  in.k = fill(sizes.n_h_kv, sizes.n_k, true);
  in.v = fill(sizes.n_h_kv, sizes.n_k, false);
  for (const ParamSpec& param : program.params) {
    ParamView view;
    if (param.symbol.type == ExprType::kF32)
      view.value.f32 = static_cast<float>(param.default_value);
    else
      view.value.i32 = static_cast<std::int32_t>(param.default_value);
    in.params.push_back(view);
  }
  return in;
}

void add_lists(const Program& program, Inputs& inputs, bool flagged, std::uint32_t seed) {
  const Sizes& s = inputs.sizes;
  const int n_j = tiles(s.n_k, attend_of(program).tile_k);
  const int rows = s.n_b * s.n_h * tiles(s.n_q, attend_of(program).tile_q);
  std::mt19937 random(seed);
  inputs.list_indices.assign(static_cast<std::size_t>(rows * n_j), 0);
  for (int row = 0; row < rows; ++row) {
    std::int32_t count = 0;
    for (int j = 0; j < n_j; ++j)
      if (random() % 2 == 0)
        inputs.list_indices[static_cast<std::size_t>(row * n_j + count++)] =
            flagged ? j | std::numeric_limits<std::int32_t>::min() : j;
    inputs.list_counts.push_back(count);
  }
}

std::uint16_t to_bits16(DType dtype, float x) {
  if (dtype == DType::kF16) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

float from_bits16(DType dtype, std::uint16_t bits) {
  if (dtype == DType::kF16) return static_cast<float>(std::bit_cast<_Float16>(bits));
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float round_to(DType dtype, float x) {
  return dtype == DType::kF32 ? x : from_bits16(dtype, to_bits16(dtype, x));
}

}  // namespace lacuna::host_tests
