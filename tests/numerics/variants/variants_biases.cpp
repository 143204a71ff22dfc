// Variants with a bias of the distance or of the key, or a weight of the score.
#include <algorithm>
#include <cmath>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

constexpr const char* kDistanceTable = R"({"version": 1, "name": "distance-table",
  "attention": {"mask": "k <= q + n_k - n_q", "score": "0.5 * s + bias[q + n_k - n_q - k + 40]"},
  "params": {"bias": {"shape": "[heads, n_k]", "doc": "by distance, from 40 on"}}})";
constexpr const char* kSlantedTable = R"({"version": 1, "name": "slanted-table",
  "attention": {"mask": "k <= q + n_k - n_q", "score": "0.5 * s + bias[q + n_k - n_q - 2 * k + 40]"},
  "params": {"bias": {"shape": "[heads, n_k]", "doc": "along a line that is none of distances"}}})";

/// A table that is read along lines, some of which end outside: `along_k` elements from a key to
/// the one before it.
void make_line_table(Variant& v, int along_k, Random& random) {
  make_causal(v);
  const int n_h = v.problem.n_h, n_k = v.problem.n_k, shift = n_k - v.problem.n_q;
  const auto bias = add_table(v, "bias", {n_h, n_k}, random);
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const int element = std::clamp(q + shift - along_k * k + 40, 0, n_k - 1);
    return 0.5 * s + bias[static_cast<std::size_t>(h * n_k + element)];
  };
}

/// A table with a row for each query, which ends three keys too early, times a number of each head,
/// beside one of the distance.
constexpr const char* kPairTable = R"x({"version": 1, "name": "pair-table",
  "attention": {"mask": "k <= q + n_k - n_q",
    "score": "0.5 * s + factor * pairs[q, k + 3] - tanh(bias[abs(q + n_k - n_q - k) // 4])"},
  "params": {"factor": {"shape": "[heads]"}, "pairs": {"shape": "[heads, n_q, n_k]"},
             "bias": {"shape": "[24]"}}})x";

void make_pair_table(Variant& v, Random& random) {
  make_causal(v);
  const int n_h = v.problem.n_h, n_q = v.problem.n_q, n_k = v.problem.n_k, shift = n_k - n_q;
  const auto factor = add_table(v, "factor", {n_h}, random);
  const auto pairs = add_table(v, "pairs", {n_h, n_q, n_k}, random);
  const auto bias = add_table(v, "bias", {24}, random);
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const auto pair = static_cast<std::size_t>((h * n_q + q) * n_k + std::min(k + 3, n_k - 1));
    const int bucket = std::min(std::abs(q + shift - k) / 4, 23);
    return 0.5 * s + factor[static_cast<std::size_t>(h)] * pairs[pair] -
           std::tanh(bias[static_cast<std::size_t>(bucket)]);
  };
}

/// A bias by rows and columns between two places of an image, which may leave its table at one end,
/// beside one of the query and the key's column.
constexpr const char* kImageBias = R"x({"version": 1, "name": "image-bias",
  "let": {"rows": "q // width - k // width", "columns": "q % width - k % width"},
  "attention": {"score": "0.5 * s + bias[rows + middle, columns + 15] + of_query[q, k % width]"},
  "params": {"width": {"type": "i32", "range": [1, 15]}, "middle": {"type": "i32"},
             "bias": {"shape": "[heads, 80, 31]"}, "of_query": {"shape": "[n_q, 15]"}}})x";

void make_image_bias(Variant& v, Random& random) {
  const int n_h = v.problem.n_h, n_q = v.problem.n_q;
  const int width = whole(random, 1, 15), middle = whole(random, 0, 1) == 0 ? 40 : 2;
  pass(v, "width", width), pass(v, "middle", middle);
  const auto bias = add_table(v, "bias", {n_h, 80, 31}, random);
  const auto of_query = add_table(v, "of_query", {n_q, 15}, random);
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const int row = std::clamp(q / width - k / width + middle, 0, 79);
    const int column = q % width - k % width + 15;
    return 0.5 * s + bias[static_cast<std::size_t>((h * 80 + row) * 31 + column)] +
           of_query[static_cast<std::size_t>(q * 15 + k % width)];
  };
}

/// A bias by buckets of the distance, whose width each head has for itself, beside one that belongs
/// to the key, but is not below one that belongs to the query. `more`: of the spec.
std::string bucket_bias_spec(const std::string& name, const std::string& more) {
  return R"({"version": 1, "name": ")" + name + R"x(",
  "attention": {"mask": "k <= q + n_k - n_q",
    "score": "0.5 * s - tanh(bias[abs(q + n_k - n_q - k) // width]) + max(level[k], least[q])"},
  "params": {"bias": {"shape": "[heads, 24]"}, "level": {"shape": "[n_k]"},
             "least": {"shape": "[n_q]"},
             "width": {"type": "i32", "shape": "[heads]", "range": [1, "inf"]}})x" +
         more + "}";
}

void make_bucket_bias(Variant& v, Random& random) {
  make_causal(v);
  const int n_h = v.problem.n_h, shift = v.problem.n_k - v.problem.n_q;
  const auto bias = add_table(v, "bias", {n_h, 24}, random);
  const auto level = add_table(v, "level", {v.problem.n_k}, random);
  const auto least = add_table(v, "least", {v.problem.n_q}, random);
  const auto width = head_count(v, "width", random, 1, 9);
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const int buckets = static_cast<int>(width[static_cast<std::size_t>(h)]);
    const int bucket = std::min(std::abs(q + shift - k) / buckets, 23);
    return 0.5 * s - std::tanh(bias[static_cast<std::size_t>(h * 24 + bucket)]) +
           std::max(level[static_cast<std::size_t>(k)], least[static_cast<std::size_t>(q)]);
  };
}

/// One part in four places, by its name (FIRE, arXiv:2310.04418).
constexpr const char* kFireBias = R"x({"version": 1, "name": "fire-bias",
  "let": {"distance": "q + n_k - n_q - k", "seen": "max(limit, q + n_k - n_q)",
          "x": "log(c * max(distance, 0) + 1) / log(c * seen + 1)",
          "first": "max(inner[0] * x + shift[0], 0)", "second": "max(inner[1] * x + shift[1], 0)",
          "third": "max(inner[2] * x + shift[2], 0)"},
  "attention": {"mask": "distance >= 0",
                "score": "s + outer[0] * first + outer[1] * second + outer[2] * third - x * x"},
  "params": {"c": {"doc": "of the logarithm"}, "limit": {"type": "i32", "doc": "the least length"},
             "inner": {"shape": "[4]", "doc": "weights"}, "shift": {"shape": "[4]", "doc": "biases"},
             "outer": {"shape": "[heads, 4]", "doc": "weights of each head"}}})x";

void make_fire_bias(Variant& v, Random& random) {
  make_causal(v);
  const int n_h = v.problem.n_h, shift = v.problem.n_k - v.problem.n_q;
  std::vector<double> inner, bias, outer;
  for (int x = 0; x < 4; ++x) inner.push_back(as_f32(uniform(random, -2, 2)));
  for (int x = 0; x < 4; ++x) bias.push_back(as_f32(uniform(random, -1, 1)));
  for (int x = 0; x < n_h * 4; ++x) outer.push_back(as_f32(uniform(random, -3, 3)));
  const double c = as_f32(uniform(random, 0.1, 2));
  v.params = {{"c", false, {c}, {}},
              {"limit", true, {64}, {}},
              {"inner", false, inner, {4}},
              {"shift", false, bias, {4}},
              {"outer", false, outer, {n_h, 4}}};
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const int last = q + shift;
    const double x = std::log(c * (last - k) + 1) / std::log(c * std::max(64, last) + 1);
    for (std::size_t n = 0; n < 3; ++n)
      s += outer[static_cast<std::size_t>(h) * 4 + n] * std::max(inner[n] * x + bias[n], 0.0);
    return s - x * x;
  };
}

/// A formula and a mask that are too long to stand in a kernel once for each score, so that both
/// are worked out in loops: every kind of part that a formula is taken apart into, and a mask that
/// asks eight elements of each pair.
std::string long_spec(const std::string& name, const std::string& mask, const std::string& more) {
  return R"({"version": 1, "name": ")" + name + R"x(",
  "let": {"distance": "q + n_k - n_q - k", "apart": "clamp(place_q[q] - place[k], -4, 4) + 4"},
  "attention": {
    "mask": ")x" +
         mask + R"x(",
    "score": "3 * tanh(s / 3) + pairs[q, k + 3] - tanh(bias[abs(distance) // 4]) + log(1 + level[k] * level[k]) + slope * distance + near[0, apart] * near[1, apart]"},
  "params": {"codes_q": {"type": "i32", "shape": "[n_q, 4]"}, "codes": {"type": "i32", "shape": "[n_k, 4]"},
             "place_q": {"type": "i32", "shape": "[n_q]"}, "place": {"type": "i32", "shape": "[n_k]"},
             "pairs": {"shape": "[heads, n_q, n_k]"}, "bias": {"shape": "[24]"},
             "level": {"shape": "[n_k]"}, "slope": {"shape": "[heads]"}, "near": {"shape": "[heads, 2, 9]"})x" +
         more + "}";
}

constexpr const char* kLongMask =
    "codes_q[q, 0] == codes[k, 0] and codes_q[q, 1] == codes[k, 1] or codes_q[q, 2] == codes[k, 2] "
    "and codes_q[q, 3] == codes[k, 3] or (7 * q + 3 * k) % 11 == 0";

/// The same where keys are gathered one by one. Codes are not negative: the mask is causal.
constexpr const char* kLongCausalMask =
    "k <= q + n_k - n_q and codes_q[q, 0] + codes[k, 0] >= 0 and codes_q[q, 1] + codes[k, 1] >= 0 "
    "and codes_q[q, 2] + codes[k, 2] >= 0 and codes_q[q, 3] + codes[k, 3] >= 0";
constexpr const char* kOfColumns = R"(, "c": {"default": 0.5}},
  "predictor": {"tile": {"q": 64, "k": 1},
                "estimate": {"q": "mean", "k": "tokens", "normalise": "softmax"},
                "keep": "p > c / n_k"},
  "loader": "gather")";

/// Integers from `low` to `high`, passed as parameter `name`.
std::vector<double> add_integers(Variant& v, const char* name, const std::vector<int>& shape,
                                 Random& random, int low, int high) {
  int count = 1;
  for (const int extent : shape) count *= extent;
  std::vector<double> values;
  for (int n = 0; n < count; ++n) values.push_back(whole(random, low, high));
  v.params.push_back({name, true, values, {shape.begin(), shape.end()}});
  return values;
}

void make_long_formulas(Variant& v, Random& random) {
  const int n_h = v.problem.n_h, n_q = v.problem.n_q, n_k = v.problem.n_k;
  const auto codes_q = add_integers(v, "codes_q", {n_q, 4}, random, 0, 3);
  const auto codes = add_integers(v, "codes", {n_k, 4}, random, 0, 3);
  const auto place_q = add_integers(v, "place_q", {n_q}, random, -3, 3);
  const auto place = add_integers(v, "place", {n_k}, random, -3, 3);
  const auto pairs = add_table(v, "pairs", {n_h, n_q, n_k}, random);
  const auto bias = add_table(v, "bias", {24}, random);
  const auto level = add_table(v, "level", {n_k}, random);
  const auto slope = head_param(v, "slope", random, -0.02, 0.02);
  const auto near = add_table(v, "near", {n_h, 2, 9}, random);
  const auto at = [](const std::vector<double>& of, int n) {
    return of[static_cast<std::size_t>(n)];
  };
  if (!v.predictor)
    v.problem.mask = [=](int q, int k, int, int) {
      const auto same = [&](int n) { return at(codes_q, q * 4 + n) == at(codes, k * 4 + n); };
      return (same(0) && same(1)) || (same(2) && same(3)) || (7 * q + 3 * k) % 11 == 0;
    };
  v.problem.score = [=](double s, int q, int k, int h, int) {
    const int distance = q + n_k - n_q - k;
    const int apart = static_cast<int>(std::clamp(at(place_q, q) - at(place, k), -4.0, 4.0)) + 4;
    return 3 * std::tanh(s / 3) + at(pairs, (h * n_q + q) * n_k + std::min(k + 3, n_k - 1)) -
           std::tanh(at(bias, std::min(std::abs(distance) / 4, 23))) +
           std::log(1 + at(level, k) * at(level, k)) + at(slope, h) * distance +
           at(near, h * 18 + apart) * at(near, h * 18 + 9 + apart);
  };
}

/// Weights of a polynomial over their sum (Based, arXiv:2402.18668), by their logarithm, steeper
/// where it is large, and keys that a score closes: runs of them, whole tiles, and all that some
/// rows have. The logarithm is read three times, on one side of a condition alone.
constexpr const char* kTaylorWeights = R"x({"version": 1, "name": "taylor-weights",
  "attention": {"mask": "k <= q + n_k - n_q",
                "score": "select(level[k] > q % 5, -inf, logit + logit * logit / 8)"},
  "let": {"logit": "log(1 + s + s * s / 2)"},
  "params": {"level": {"type": "i32", "shape": "[n_k]", "doc": "of each key"}}})x";

void make_taylor_weights(Variant& v, Random& random) {
  make_causal(v);
  std::vector<double> level;
  while (static_cast<int>(level.size()) < v.problem.n_k) {
    const auto length = static_cast<std::size_t>(uniform(random, 5, 150));
    level.insert(level.end(), length, std::floor(uniform(random, 0, 6)));
  }
  level.resize(static_cast<std::size_t>(v.problem.n_k));
  v.params = {{"level", true, level, {v.problem.n_k}}};
  v.problem.score = [=](double s, int q, int k, int, int) {
    const double logit = std::log(1 + s + s * s / 2);
    return level[static_cast<std::size_t>(k)] > q % 5 ? -kInfinity : logit + logit * logit / 8;
  };
}

}  // namespace

std::string bias_spec(const std::string& name) {
  if (name == "distance-table") return kDistanceTable;
  if (name == "slanted-table") return kSlantedTable;
  if (name == "pair-table") return kPairTable;
  if (name == "image-bias") return kImageBias;
  if (name == "bucket-bias") return bucket_bias_spec(name, "");
  if (name == "bucket-bias-mma") return bucket_bias_spec(name, R"(, "loader": "cp_async")");
  if (name == "taylor-weights") return kTaylorWeights;
  if (name == "long-formulas") return long_spec(name, kLongMask, "}");
  if (name == "long-columns") return long_spec(name, kLongCausalMask, kOfColumns);
  return name == "fire-bias" ? kFireBias : "";
}

bool make_bias_variant(const std::string& name, Variant& v, KernelTile tile, Random& random) {
  if (name == "distance-table") return make_line_table(v, 1, random), true;
  if (name == "slanted-table") return make_line_table(v, 2, random), true;
  if (name == "pair-table") return make_pair_table(v, random), true;
  if (name == "image-bias") return make_image_bias(v, random), true;
  if (name.starts_with("bucket-bias")) return make_bucket_bias(v, random), true;
  if (name == "taylor-weights") return make_taylor_weights(v, random), true;
  if (name == "long-columns") make_token_variant("columns-of-pairs", v, tile, random);
  if (name.starts_with("long-")) return make_long_formulas(v, random), true;
  if (name == "fire-bias") return make_fire_bias(v, random), true;
  return false;
}

}  // namespace lacuna::numerics
