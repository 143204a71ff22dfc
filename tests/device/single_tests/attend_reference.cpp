#include "tests/device/single_tests/attend_reference.hpp"

#include <cmath>
#include <limits>

namespace lacuna::device {
namespace {

using single::AttendChoice;
using single::Group;
using single::Skips;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::size_t at(long long n) { return static_cast<std::size_t>(n); }
int divide_up(int a, int b) { return (a + b - 1) / b; }
int padded(int n) { return divide_up(n, 256) * 256; }

emulation::Format format_of(const AttendChoice& choice) {
  return choice.is_bf16 ? emulation::Format::kBF16 : emulation::Format::kF16;
}

/// Quantisation group of a token, counted along the tokens (Quantise in compiler/ir/program.hpp).
int group_of(Group group, bool is_query, int tile, int token) {
  const int in_tile = token % tile, number = token / tile;
  switch (group) {
    case Group::kBlock:
      return number;
    case Group::kWarp:
      return is_query ? number * (tile / 16) + in_tile / 16 : number;
    case Group::kThread:
      return is_query ? number * (tile / 2) + in_tile / 16 * 8 + in_tile % 8
                      : number * (tile / 8) + in_tile / 32 * 4 + in_tile % 8 / 2;
  }
  return -1;
}

int groups_of(Group group, bool is_query, int tile, int n) {
  const int of_tile = group == Group::kBlock  ? 1
                      : group == Group::kWarp ? (is_query ? tile / 16 : 1)
                                              : tile / (is_query ? 2 : 8);
  return divide_up(n, tile) * of_tile;
}

/// Softmax of one row as far as it has come.
struct Row {
  double maximum = -kInf, sum = 0;
  std::vector<double> output;
};

/// One work tile.
class WorkTile {
 public:
  WorkTile(const AttendProblem& problem, int b, int h, int i, AttendResults& results)
      : p_(problem), c_(problem.choice), b_(b), h_(h), i_(i), results_(results) {
    const int rows = std::min(c_.tile_q, p_.shape.n_q - i * c_.tile_q);
    rows_.assign(at(rows), Row{-kInf, 0, std::vector<double>(at(c_.head_dim))});
  }

  void run() {
    const long long number = (static_cast<long long>(b_) * p_.shape.n_h + h_) * p_.q_tiles + i_;
    int* counts = &results_.counts[at(number * 3)];
    unsigned char* map = &results_.tile_mask[at(number * p_.k_tiles)];
    std::vector<std::vector<int>> tiles =
        c_.gathers ? gathered_tiles(map, counts) : visible_tiles();
    if (!c_.gathers) counts[0] = counts[1] = static_cast<int>(tiles.size());
    if (c_.is_descending) std::ranges::reverse(tiles);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      const bool gated = visit(tiles[t], t == 0);
      if (c_.gathers) continue;
      map[tiles[t][0] / c_.tile_k] = gated ? 2 : 1;
      counts[2] += gated ? 1 : 0;
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) write(static_cast<int>(r));
  }

 private:
  bool leaves_visible(int k0) const {
    const int q1 = i_ * c_.tile_q + static_cast<int>(rows_.size()) - 1;
    return p_.is_visible(q1, k0);  // the mask is causal: the last row sees the most
  }

  std::vector<std::vector<int>> visible_tiles() const {
    std::vector<std::vector<int>> tiles;
    for (int k0 = 0; k0 < p_.shape.n_k; k0 += c_.tile_k) {
      if (!leaves_visible(k0)) continue;
      tiles.emplace_back();
      for (int k = k0; k < std::min(k0 + c_.tile_k, p_.shape.n_k); ++k) tiles.back().push_back(k);
    }
    return tiles;
  }

  std::vector<std::vector<int>> gathered_tiles(unsigned char* map, int* counts) const {
    std::vector<int> keys;
    for (int column = 0; column < p_.k_tiles; ++column) {
      counts[0] += leaves_visible(column * c_.keep_k) ? 1 : 0;
      if (!p_.is_kept(b_, h_, i_, column)) continue;
      map[column] = 1;
      ++counts[1];
      for (int k = column * c_.keep_k; k < (column + 1) * c_.keep_k; ++k)
        if (k < p_.shape.n_k) keys.push_back(k);
    }
    std::vector<std::vector<int>> tiles;
    for (std::size_t n = 0; n < keys.size(); ++n) {
      if (n % at(c_.tile_k) == 0) tiles.emplace_back();
      tiles.back().push_back(keys[n]);
    }
    return tiles;
  }

  /// Did every warp gate the tile?
  bool visit(const std::vector<int>& keys, bool is_first) {
    const std::size_t in_scope = c_.skips == Skips::kWarpPv ? 16 : rows_.size();
    bool gated_by_all = c_.skips != Skips::kNothing;
    for (std::size_t first = 0; first < rows_.size(); first += in_scope) {
      const std::size_t end = std::min(first + in_scope, rows_.size());
      std::vector<std::vector<double>> logits;
      double gap = -kInf;
      for (std::size_t r = first; r < end; ++r) {
        logits.push_back(logits_of(static_cast<int>(r), keys));
        const double largest = *std::ranges::max_element(logits.back());
        if (largest > -kInf) gap = std::max(gap, largest - rows_[r].maximum);
      }
      const bool gated = !is_first && c_.skips != Skips::kNothing && gap < single::kGateGap;
      gated_by_all = gated_by_all && gated;
      if (gated && c_.skips == Skips::kTileV) continue;
      for (std::size_t r = first; r < end; ++r) add(rows_[r], logits[r - first], keys, !gated);
    }
    return gated_by_all;
  }

  std::vector<double> logits_of(int r, const std::vector<int>& keys) const {
    std::vector<double> logits;
    const int q = i_ * c_.tile_q + r;
    for (const int k : keys) logits.push_back(p_.is_visible(q, k) ? p_.logit(b_, h_, q, k) : -kInf);
    return logits;
  }

  double rounded(double weight) const {
    if (c_.v_bits == 8) {
      const std::uint8_t code = emulation::round_to_e4m3(static_cast<float>(448 * weight));
      return static_cast<double>(emulation::e4m3_to_float(code)) / 448;
    }
    const emulation::Format format = p_.format();
    return emulation::to_float(format, emulation::round_to(format, static_cast<float>(weight)));
  }

  void add(Row& row, const std::vector<double>& logits, const std::vector<int>& keys,
           bool with_values) const {
    const double maximum = std::max(row.maximum, *std::ranges::max_element(logits));
    if (maximum == -kInf) return;
    const double decay = std::exp(row.maximum - maximum);
    row.maximum = maximum;
    row.sum *= decay;
    for (double& x : row.output) x *= decay;
    const int h_kv = h_ / (p_.shape.n_h / p_.shape.n_h_kv);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      const double weight = std::exp(logits[n] - maximum);
      row.sum += weight;
      if (!with_values || weight == 0) continue;
      const double used = rounded(weight);
      for (int x = 0; x < c_.head_dim; ++x)
        row.output[at(x)] += used * p_.value(b_, h_kv, keys[n], x);
    }
  }

  void write(int r) {
    const Row& row = rows_[at(r)];
    const long long number =
        (static_cast<long long>(b_) * p_.shape.n_h + h_) * p_.shape.n_q + i_ * c_.tile_q + r;
    results_.lse[at(number)] = row.sum == 0 ? -kInf : row.maximum + std::log(row.sum);
    for (int x = 0; x < c_.head_dim; ++x)
      results_.o[at(number * c_.head_dim + x)] = row.sum == 0 ? 0 : row.output[at(x)] / row.sum;
  }

  const AttendProblem& p_;
  const AttendChoice& c_;
  const int b_, h_, i_;
  AttendResults& results_;
  std::vector<Row> rows_;
};

AttendResults results_for(const AttendProblem& p) {
  const auto& s = p.shape;
  const int rows = s.n_b * s.n_h * p.q_tiles;
  return {std::vector<double>(at(1LL * s.n_b * s.n_h * s.n_q * p.choice.head_dim)),
          std::vector<double>(at(1LL * s.n_b * s.n_h * s.n_q)), std::vector<int>(at(rows * 3LL)),
          std::vector<unsigned char>(at(1LL * rows * p.k_tiles))};
}

}  // namespace

std::string AttendShapeOf::text() const {
  return "n_b " + std::to_string(n_b) + ", n_h " + std::to_string(n_h) + ", n_h_kv " +
         std::to_string(n_h_kv) + ", n_q " + std::to_string(n_q) + ", n_k " + std::to_string(n_k);
}

AttendProblem::AttendProblem(const AttendChoice& of, const AttendShapeOf& size, std::uint32_t seed)
    : choice(of),
      shape(size),
      q_tiles(divide_up(size.n_q, of.tile_q)),
      k_tiles(divide_up(size.n_k, of.gathers ? of.keep_k : of.tile_k)),
      q_padded(padded(size.n_q)),
      k_padded(padded(size.n_k)),
      q(random_tensor(size.n_b, size.n_h, size.n_q, of.head_dim, format_of(of), false, seed)),
      k(random_tensor(size.n_b, size.n_h_kv, size.n_k, of.head_dim, format_of(of), true, seed + 1)),
      v(random_tensor(size.n_b, size.n_h_kv, size.n_k, of.head_dim, format_of(of), true, seed + 2)),
      o(size.n_b, size.n_h, size.n_q, of.head_dim, format_of(of), true),
      lse(at(1LL * size.n_b * size.n_h * size.n_q)),
      counts(at(3LL * size.n_b * size.n_h * q_tiles)),
      tile_mask(at(1LL * size.n_b * size.n_h * q_tiles * k_tiles)),
      gathered(at(3LL * k_padded)) {
  std::mt19937 random(seed + 3);
  if (choice.skips != single::Skips::kNothing) make_keys_uneven();
  if (choice.qk_bits == 8) {
    quantise(true);
    quantise(false);
    std::normal_distribution<float> normal(0, 2);
    row_bias.resize(at(1LL * size.n_b * size.n_h * q_padded));
    column_bias.resize(at(1LL * size.n_b * size.n_h * k_padded));
    for (float& x : row_bias) x = normal(random);
    for (float& x : column_bias) x = normal(random);
  }
  if (choice.v_bits == 8) quantise_values();
  if (choice.gathers) choose_columns(random);
  fill_args();
}

emulation::Format AttendProblem::format() const { return format_of(choice); }

void AttendProblem::make_keys_uneven() {
  for (int b = 0; b < shape.n_b; ++b)
    for (int h = 0; h < shape.n_h_kv; ++h)
      for (int token = 0; token < shape.n_k; ++token)
        for (int x = 0; x < choice.head_dim; ++x)
          k.set(b, h, token, x, k.at(b, h, token, x) * (token / 128 % 2 == 0 ? 0.05F : 1.5F));
}

void AttendProblem::quantise(bool is_query) {
  const int heads = is_query ? shape.n_h : shape.n_h_kv, n = is_query ? shape.n_q : shape.n_k;
  const int tile = is_query ? choice.tile_q : std::max(choice.group_tile_k, choice.tile_k);
  const int groups = groups_of(choice.group, is_query, tile, n), d = choice.head_dim;
  const int length = is_query ? q_padded : k_padded;
  const Tensor& x = is_query ? q : k;
  auto& values = is_query ? q_values : k_values;
  auto& scales = is_query ? q_scale : k_scale;
  values.assign(at(1LL * shape.n_b * heads * length * d), 99);  // nothing may come of the padding
  scales.assign(at(1LL * shape.n_b * heads * groups), 0);
  const auto for_each = [&](auto body) {
    for (int b = 0; b < shape.n_b; ++b)
      for (int h = 0; h < heads; ++h)
        for (int token = 0; token < n; ++token)
          for (int column = 0; column < d; ++column) {
            const long long head = b * heads + h;
            float& scale =
                scales[at(head * groups + group_of(choice.group, is_query, tile, token))];
            body(x.at(b, h, token, column), scale,
                 values[at((head * length + token) * d + column)]);
          }
  };
  for_each([](float value, float& scale, signed char&) {
    scale = std::max(scale, std::fabs(value) / 127);
  });
  for_each([](float value, float& scale, signed char& integer) {
    integer = static_cast<signed char>(std::lround(value / scale));
  });
  for (float& scale : scales)
    if (scale == 0) scale = std::numeric_limits<float>::quiet_NaN();  // a group of padding alone
}

void AttendProblem::quantise_values() {
  const int d = choice.head_dim;
  v_scale.assign(at(1LL * shape.n_b * shape.n_h_kv * d), 0);
  v_values.assign(v_scale.size() * at(k_padded), 0);
  for (int b = 0; b < shape.n_b; ++b)
    for (int h = 0; h < shape.n_h_kv; ++h)
      for (int channel = 0; channel < d; ++channel) {
        const long long row = static_cast<long long>(b * shape.n_h_kv + h) * d + channel;
        float& scale = v_scale[at(row)];
        if (channel == 5)
          for (int token = 0; token < shape.n_k; ++token) v.set(b, h, token, channel, 0);
        for (int token = 0; token < shape.n_k; ++token)
          scale = std::max(scale, std::fabs(v.at(b, h, token, channel)) / 448);
        if (scale == 0) scale = 1;
        for (int token = 0; token < shape.n_k; ++token) {
          const int in_order = token % 8 / 2 * 4 + token % 16 / 8 * 2 + token % 2;
          v_values[at(row * k_padded + token / 16 * 16 + in_order)] =
              emulation::round_to_e4m3(v.at(b, h, token, channel) / scale);
        }
      }
}

void AttendProblem::choose_columns(std::mt19937& random) {
  const int words = divide_up(k_tiles, 32);
  kept.assign(at(1LL * shape.n_b * shape.n_h * q_tiles * words), 0);
  for (int row = 0; row < shape.n_b * shape.n_h * q_tiles; ++row) {
    // Nothing, everything, the last column alone, or some; head by head and tile by tile.
    const int kind = static_cast<int>(random() % 5);
    for (int column = 0; column < k_tiles; ++column) {
      const bool keep =
          kind == 1 || (kind == 2 && column == k_tiles - 1) || (kind > 2 && random() % 4 == 0);
      if (keep) kept[at(1LL * row * words + column / 32)] |= 1U << (column % 32);
    }
  }
}

bool AttendProblem::is_kept(int b, int h, int i, int column) const {
  const int group = choice.has_shared_heads ? shape.n_h / shape.n_h_kv : 1;
  const int words = divide_up(k_tiles, 32);
  for (int head = h - h % group; head < h - h % group + group; ++head) {
    const long long row = (static_cast<long long>(b) * shape.n_h + head) * q_tiles + i;
    if ((kept[at(row * words + column / 32)] >> (column % 32) & 1U) != 0) return true;
  }
  return false;
}

double AttendProblem::value(int b, int h_kv, int token, int channel) const {
  const float x = v.at(b, h_kv, token, channel);
  if (choice.v_bits == 16) return x;
  const float scale =
      v_scale[at((static_cast<long long>(b) * shape.n_h_kv + h_kv) * choice.head_dim + channel)];
  return static_cast<double>(emulation::e4m3_to_float(emulation::round_to_e4m3(x / scale))) * scale;
}

double AttendProblem::logit(int b, int h, int q_token, int k_token) const {
  const int h_kv = h / (shape.n_h / shape.n_h_kv), d = choice.head_dim;
  const long long head = static_cast<long long>(b) * shape.n_h + h;
  const long long head_kv = static_cast<long long>(b) * shape.n_h_kv + h_kv;
  double product = 0;
  if (choice.qk_bits == 8) {
    const int tile_k = std::max(choice.group_tile_k, choice.tile_k);
    for (int x = 0; x < d; ++x)
      product += q_values[at((head * q_padded + q_token) * d + x)] *
                 k_values[at((head_kv * k_padded + k_token) * d + x)];
    product *= q_scale[at(head * groups_of(choice.group, true, choice.tile_q, shape.n_q) +
                          group_of(choice.group, true, choice.tile_q, q_token))];
    product *= k_scale[at(head_kv * groups_of(choice.group, false, tile_k, shape.n_k) +
                          group_of(choice.group, false, tile_k, k_token))];
    if (choice.has_row_bias) product += row_bias[at(head * q_padded + q_token)];
    if (choice.has_column_bias) product += column_bias[at(head * k_padded + k_token)];
  } else {
    for (int x = 0; x < d; ++x)
      product += static_cast<double>(q.at(b, h, q_token, x)) * k.at(b, h_kv, k_token, x);
  }
  product *= args.attend.scale;
  return choice.has_score ? product + static_cast<double>(single::kScoreSlope) * k_token : product;
}

bool AttendProblem::is_visible(int q_token, int k_token) const {
  return !choice.is_causal || k_token <= q_token + shape.n_k - shape.n_q;
}

void AttendProblem::fill_args() {
  AttendArgs& a = args.attend;
  a.q = q.arg(), a.k = k.arg(), a.v = v.arg(), a.o = o.arg();
  a.lse = {lse.data(), 1LL * shape.n_h * shape.n_q, shape.n_q};
  a.counts = counts.data();
  a.tile_mask = tile_mask.data();
  a.n_b = shape.n_b, a.n_h = shape.n_h, a.heads_per_kv = shape.n_h / shape.n_h_kv;
  a.n_q = shape.n_q, a.n_k = shape.n_k;
  a.q_tiles = q_tiles, a.k_tiles = k_tiles;
  a.scale = 1 / std::sqrt(static_cast<float>(choice.head_dim));
  PredictArgs& p = args.predict;
  p.q_values = q_values.data(), p.k_values = k_values.data();
  p.q_scale = q_scale.data(), p.k_scale = k_scale.data();
  p.row_bias = row_bias.data(), p.column_bias = column_bias.data();
  p.v_values = v_values.data(), p.v_scale = v_scale.data();
  p.kept = kept.data(), p.gathered = gathered.data();
  p.q_padded = q_padded, p.k_padded = k_padded;
  p.keep_q_tiles = q_tiles, p.keep_k_tiles = k_tiles, p.keep_words = divide_up(k_tiles, 32);
  const int tile_k = std::max(choice.group_tile_k, choice.tile_k);
  p.q_groups = groups_of(choice.group, true, choice.tile_q, shape.n_q);
  p.k_groups = groups_of(choice.group, false, tile_k, shape.n_k);
}

AttendResults reference(const AttendProblem& problem) {
  AttendResults results = results_for(problem);
  for (int b = 0; b < problem.shape.n_b; ++b)
    for (int h = 0; h < problem.shape.n_h; ++h)
      for (int i = 0; i < problem.q_tiles; ++i) WorkTile(problem, b, h, i, results).run();
  return results;
}

}  // namespace lacuna::device
