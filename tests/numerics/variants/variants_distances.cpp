// Masks with conditions on the distance of query and key alone, or on the key or the query alone.
#include <algorithm>
#include <cmath>

#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

constexpr const char* kDilated = R"({"version": 1, "name": "dilated",
  "attention": {"mask": "(q + n_k - n_q - k) % 3 == 0 and k <= q + n_k - n_q"}})";

constexpr const char* kInt8Dilated = R"({"version": 1, "name": "int8-dilated",
  "attention": {"mask": "(q + n_k - n_q - k) % 3 == 0 and k <= q + n_k - n_q"},
  "quantise": {"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}},
  "tile": {"q": [128, 64], "k": [64, 32]}})";

constexpr const char* kDilatedGate = R"({"version": 1, "name": "dilated-gate",
  "attention": {"mask": "(q + n_k - n_q - k) % 3 == 0 and k <= q + n_k - n_q"},
  "params": {"lambda": {"shape": "scalar", "range": [-50, 0], "doc": "of row maxima"}},
  "gate": {"scope": "warp", "skip": "gap < lambda", "skips": ["pv"]},
  "tile": {"q": [128, 64], "k": 64}})";

constexpr const char* kKeptDistances = R"({"version": 1, "name": "kept-distances",
  "attention": {"mask":
    "first[q] <= k and k <= q + n_k - n_q and kept[min(q + n_k - n_q - k, 95)] > 0"},
  "params": {"first": {"type": "i32", "shape": "[n_q]", "doc": "of the keys that a query sees"},
             "kept": {"type": "i32", "shape": "[heads, 96]", "doc": "above 0: seen"}}})";

constexpr const char* kStridedLists = R"({"version": 1, "name": "strided-lists",
  "attention": {"mask": "(q - k) % stride == 0", "score": "0.5 * s + bias[min(abs(q - k), 63)]"},
  "params": {"stride": {"type": "i32", "shape": "[heads]", "range": [1, "inf"]},
             "bias": {"shape": "[heads, 64]", "doc": "by distance"},
             "window": {"type": "i32", "shape": "[heads]", "doc": "keys before a tile"}},
  "predictor": {"tile": {"q": 128, "k": 128}, "keep": "j == 0 or q0 - k1 < window"},
  "tile": {"k": 64}})";

constexpr const char* kStridedPattern = R"x({"version": 1, "name": "strided-pattern",
  "let": {"distance": "q + n_k - n_q - k",
          "counts": "distance < 20 or k % stride == 0 or marked[q] == 1",
          "is_hidden": "level[k] > 2 and (q - k) % 5 == 1"},
  "attention": {"mask": "distance >= 0 and counts and not is_hidden"},
  "params": {"stride": {"type": "i32", "shape": "[heads]", "range": [1, "inf"]},
             "marked": {"type": "i32", "shape": "[n_q]", "doc": "1: sees all before it"},
             "level": {"type": "i32", "shape": "[n_k]", "doc": "above 2: hidden"}}})x";

void make_dilated(Variant& v) {
  const int shift = v.problem.n_k - v.problem.n_q;
  v.problem.mask = [=](int q, int k, int, int) {
    return k <= q + shift && (q + shift - k) % 3 == 0;
  };
}

void make_dilated_gate(Variant& v, Random& random) {
  make_dilated(v);
  const double lambda = as_f32(uniform(random, -3, -0.2));
  v.params = {{"lambda", false, {lambda}, {}}};
  v.gate = gap_gate([=](const oracle::TileIndex&) { return lambda; }, {});
  v.gate->scope = oracle::Scope::kWarp;
}

void make_kept_distances(Variant& v, Random& random) {
  constexpr int kDistances = 96;
  const int n_h = v.problem.n_h, n_q = v.problem.n_q, shift = v.problem.n_k - n_q;
  std::vector<double> first, kept;
  double document = 0;
  for (int q = 0; q < n_q; ++q) {
    if (uniform(random, 0, 50) < 1) document = std::max(q + shift - 5, 0);
    first.push_back(document);
  }
  for (int x = 0; x < n_h * kDistances; ++x) kept.push_back(std::floor(uniform(random, -1, 2)));
  v.params = {{"first", true, first, {n_q}}, {"kept", true, kept, {n_h, kDistances}}};
  v.problem.mask = [=](int q, int k, int h, int) {
    const int distance = q + shift - k;
    if (distance < 0 || k < first[static_cast<std::size_t>(q)]) return false;
    const int element = h * kDistances + std::min(distance, kDistances - 1);
    return kept[static_cast<std::size_t>(element)] > 0;
  };
}

void make_strided_pattern(Variant& v, Random& random) {
  const int n_q = v.problem.n_q, n_k = v.problem.n_k, shift = n_k - n_q;
  const auto stride = head_count(v, "stride", random, 3, 70);
  const auto of_tokens = [&](const char* name, int tokens, double most) {
    std::vector<double> values;
    for (int x = 0; x < tokens; ++x) values.push_back(std::floor(uniform(random, 0, most)));
    v.params.push_back({name, true, values, {tokens}});
    return values;
  };
  const auto marked = of_tokens("marked", n_q, 9), level = of_tokens("level", n_k, 6);
  v.problem.mask = [=](int q, int k, int h, int) {
    const int distance = q + shift - k;
    if (distance < 0) return false;
    const bool counts = distance < 20 ||
                        k % static_cast<int>(stride[static_cast<std::size_t>(h)]) == 0 ||
                        marked[static_cast<std::size_t>(q)] == 1;
    const bool is_at_step = ((q - k) % 5 + 5) % 5 == 1;
    return counts && !(level[static_cast<std::size_t>(k)] > 2 && is_at_step);
  };
}

void make_strided_lists(Variant& v, Random& random) {
  const int n_h = v.problem.n_h;
  const auto stride = head_count(v, "stride", random, 1, 9);
  const auto bias = add_table(v, "bias", {n_h, 64}, random);
  keep_window_of_tiles(v, random);
  v.problem.mask = [=](int q, int k, int h, int) {
    return (q - k) % static_cast<int>(stride[static_cast<std::size_t>(h)]) == 0;
  };
  v.problem.score = [=](double s, int q, int k, int h, int) {
    return 0.5 * s + bias[static_cast<std::size_t>(h * 64 + std::min(std::abs(q - k), 63))];
  };
}

}  // namespace

std::string distance_spec(const std::string& name) {
  if (name == "dilated") return kDilated;
  if (name == "int8-dilated") return kInt8Dilated;
  if (name == "dilated-gate") return kDilatedGate;
  if (name == "kept-distances") return kKeptDistances;
  if (name == "strided-pattern") return kStridedPattern;
  return name == "strided-lists" ? kStridedLists : "";
}

bool make_distance_variant(const std::string& name, Variant& v, Random& random) {
  if (name == "dilated") return make_dilated(v), true;
  if (name == "int8-dilated") {
    v.quantisation.qk_bits = v.quantisation.v_bits = 8;
    return make_dilated(v), true;
  }
  if (name == "dilated-gate") return make_dilated_gate(v, random), true;
  if (name == "kept-distances") return make_kept_distances(v, random), true;
  if (name == "strided-pattern") return make_strided_pattern(v, random), true;
  if (name == "strided-lists") return make_strided_lists(v, random), true;
  return false;
}

}  // namespace lacuna::numerics
