// Random specs that are nearly always legal, from a seed: every kind of formula, shape of a
// parameter, gate, predictor, quantisation, weights and tile, in combinations that nobody wrote.
#pragma once

#include <string>
#include <vector>

#include "tests/compile/random_predictor.hpp"
#include "tests/expr/random_expr.hpp"

namespace lacuna::test {

/// What the values of a parameter lie between, where formulas decide something by them.
struct ParamRange {
  const char* name;
  double low, high;
};
inline constexpr ParamRange kParamRanges[] = {
    {"tau", 0.4, 3},       {"slope", 0.004, 0.3}, {"limit", 1, 160},    {"window", 1, 150},
    {"start", 0, 400},     {"document", 0, 12},   {"group", 0, 12},     {"level", -2, 3},
    {"threshold", -1, 4},  {"bucket", -2, 2},     {"pairs", -4, 60},    {"stride", 1, 40},
    {"bias", -2, 2},       {"doc_q", 0, 6},       {"doc_k", 0, 6},      {"cap", 0.5, 20},
    {"lambda", -1.5, 2.5}, {"least", -1, 4},      {"theta", 0.02, 0.5}, {"mass", 0.1, 0.95},
    {"count", 0, 4},       {"sink", -2, 5},       {"reach", 1, 6},
};

inline const ParamRange& range_of(const std::string& name) {
  return *std::ranges::find_if(kParamRanges,
                               [&](const ParamRange& row) { return name == row.name; });
}

class RandomSpec {
 public:
  explicit RandomSpec(std::uint64_t seed) : random_(seed) {
    symbols_ = random_parameters(random_, {}, false).symbols;
    const auto add_symbol = [&](const char* name, ExprType type, std::vector<ParamDim> shape) {
      symbols_.push_back({name, type, std::move(shape), false});
    };
    using enum ExprType;
    add_symbol("stride", kI32, {});
    add_symbol("bias", kF32, {ParamAxis::kHeads, ParamAxis::kNK});
    add_symbol("doc_q", kI32, {ParamAxis::kBatch, ParamAxis::kNQ});
    add_symbol("doc_k", kI32, {ParamAxis::kBatch, ParamAxis::kNK});
    // For rules that each want other numbers.
    for (const char* name : {"cap", "lambda", "least", "reach"}) add_symbol(name, kF32, {});
    for (const char* name : {"theta", "mass", "sink"}) add_symbol(name, kF32, {ParamAxis::kHeads});
    add_symbol("count", kI32, {ParamAxis::kHeads});
  }

  std::string text() {
    const bool predicts = random_.chance(35), quantises = random_.chance(20);
    const bool sums = random_.chance(12);  // no softmax, so nothing that needs one
    RandomPredictor predictor(random_, quantises);
    const std::string steps = predicts ? predictor.text() : "";
    const bool gates = !sums && !predictor.gathers() && random_.chance(30);
    std::string body;
    // Where a predictor asks which pairs are visible, it has to be known exactly.
    add(body, "attention", attention(predictor.asks_pairs(), sums), "\n ");
    add(body, "predictor", steps, "\n ");
    if (gates) add(body, "gate", gate(), "\n ");
    std::string codes;
    if (quantises && !predictor.gathers()) codes = quantise(sums);
    add(body, "quantise", codes, "\n ");
    const bool has_codes = codes.find("\"v\"") != std::string::npos;
    const bool is_ordered = gates || has_codes || predictor.gathers();
    const bool may_descend = !predictor.gathers();
    const std::string tiles = tile(predicts, is_ordered, may_descend);
    if (!tiles.empty()) add(body, "tile", "{" + tiles + "}", "\n ");
    if (!predicts && random_.chance(6)) add(body, "mask", "\"external\"", "\n ");
    if (random_.chance(6)) add(body, "permute", "\"external\"", "\n ");
    return "{\"version\": 1, \"name\": \"random\"" + parameters(body) +
           (body.empty() ? "" : ",\n " + body) + "}\n";
  }

  /// Is the mask one of those of which bounds of a tile tell whether it has a visible pair?
  static bool has_exact_bounds(const std::string& mask) {
    return std::ranges::count(exact_masks(), mask) > 0;
  }

  int head_dim() { return random_.pick(std::vector<int>{64, 64, 96, 128, 128, 128, 256}); }
  bool is_f16() { return random_.chance(30); }
  /// Of V and O; 0: as that of the keys.
  int head_dim_v() { return random_.chance(85) ? 0 : random_.pick(std::vector<int>{64, 96, 128}); }

 private:
  static void add(std::string& object, const char* key, const std::string& value,
                  const char* space = " ") {
    if (value.empty()) return;
    if (!object.empty()) object += std::string(",") + space;
    object += std::string("\"") + key + "\": " + value;
  }

  static std::string quoted(const std::string& text) {
    return text.empty() ? "" : "\"" + text + "\"";
  }

  std::string formula(Site site, int depth) {
    return RandomExpr(random_, site, symbols_).text(depth);
  }

  /// Formulas and what becomes of logits; "" if nothing is said.
  std::string attention(bool is_exact, bool sums) {
    std::string fields;
    add(fields, "mask", quoted(mask(is_exact)));
    add(fields, "score", quoted(random_.chance(50) ? score() : ""));
    if (random_.chance(10)) add(fields, "scale", "0.1");
    if (sums) {
      add(fields, "normalise", random_.chance(50) ? "\"sigmoid\"" : "\"none\"");
    } else {
      if (random_.chance(15)) add(fields, "sink", quoted(sink()));
      if (random_.chance(20)) add(fields, "lse", "true");
      if (random_.chance(15)) add(fields, "lse_base", "\"2\"");
    }
    return fields.empty() ? "" : "{" + fields + "}";
  }

  std::string sink() {
    static const std::vector<std::string> kSinks = {"sink", "sink - slope * q", "level[q] + h",
                                                    "select(q % stride == 0, -inf, sink)"};
    return random_.pick(kSinks);
  }

  static const std::vector<std::string>& exact_masks() {
    static const std::vector<std::string> kMasks = {"",
                                                    "k <= q + n_k - n_q",
                                                    "k <= q",
                                                    "k <= q and k > q - window",
                                                    "k // stride <= q // stride",
                                                    "k < 64 or abs(q - k) < limit",
                                                    "k <= start[q]"};
    return kMasks;
  }

  /// `is_exact`: one of those above, or one of which bounds say so little that pairs are asked.
  std::string mask(bool is_exact) {
    static const std::vector<std::string> kAskedMasks = {
        "(q - k) % stride == 0 or q - k < window",         "q // limit % 2 == k // stride % 2",
        "hash(limit, q // 64) >> (k // 32 & 31) & 1 == 1", "pairs[q, k] < limit or k == q",
        "document[h, k] == group[q] and k <= q",           "group[q // 64] % 3 == k // 64 % 3"};
    static const std::vector<std::string> kMasks = {
        "doc_q[b, q] == doc_k[b, k]",
        "doc_q[b, q] == doc_k[b, k] and k <= q",
        "(q - k) % stride == 0 or q - k < window",
        "k <= start[q] or k % stride == h",
        "document[h, k] == group[q] and k <= q",
        "k // limit % 2 == q // stride % 2",
        "hash(limit, q // 16) >> (k // 8 & 31) & 1 == 1",
        "pairs[q, k] < limit or k == q",
        "level[k] < tau and k <= q + window",
        "abs(q * n_k - k * n_q) < window * n_q"};
    if (is_exact) return random_.pick(random_.chance(60) ? exact_masks() : kAskedMasks);
    if (random_.chance(25)) return formula(Site::kMask, random_.chance(70) ? 2 : 3);
    return random_.chance(40) ? random_.pick(exact_masks()) : random_.pick(kMasks);
  }

  std::string score() {
    static const std::vector<std::string> kScores = {
        "s - slope * (q - k)",
        "cap * tanh(s / cap)",
        "s * tau",
        "s + bias[h, q - k]",
        "s + bias[h, (q - k) // stride]",
        "select(doc_q[b, q] == doc_k[b, k], s, s - 4)",
        "s * ((k + q) % 3) - slope * bit_length(q - k)",
        "s + level[k] - slope * (q // stride - k // limit)",
        "s + bucket[bit_length(q - k)] + pairs[q, k] * slope",
        "select(abs(q - k) < window, s * tau, -inf)",
        "max(s, level[k]) + tau * exp(-slope * abs(q - k))",
        "s - log2(1.0 + abs(q - k)) / tau",
        "cap * tanh(s / cap) - slope * abs(q - k)"};
    return random_.chance(75) ? random_.pick(kScores)
                              : "s + " + formula(Site::kScore, random_.chance(70) ? 2 : 3);
  }

  std::string gate() {
    static const std::vector<std::string> kGates = {
        R"("skip": "gap < lambda", "skips": ["pv"])",
        R"("skip": "gap < lambda", "skips": ["exp", "pv"])",
        R"("skip": "tile_max < reach", "skips": ["exp", "pv"])",
        R"("skip": "tile_max < reach or gap < lambda", "skips": ["pv"])",
        R"("skip": "tile_max < threshold", "exempt": "k1 >= q0", "skips": ["exp", "pv"])",
        R"("skip": "gap < lambda and j % stride != 0", "skips": ["exp", "pv"])",
        R"("skip": "gap < log(mass) - slope * q0 + slope * k1", "skips": ["exp", "pv"])"};
    const std::string rule = random_.pick(kGates);
    if (random_.chance(40)) return "{\"scope\": \"warp\", " + rule + "}";
    const bool loads = random_.chance(50);
    const std::size_t end = rule.size() - 1;
    return "{\"scope\": \"tile\", " + (loads ? rule.substr(0, end) + ", \"v_load\"]" : rule) + "}";
  }

  std::string quantise(bool sums) {
    static const std::vector<std::string> kForms = {
        R"({"qk": {"bits": 8, "group": "block"}})", R"({"qk": {"bits": 8, "group": "warp"}})",
        R"({"qk": {"bits": 8, "group": "thread"}})",
        R"({"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}})",
        R"({"qk": {"bits": 8, "group": "warp"}, "v": {"bits": 8, "range": 2.25}})"};
    return kForms[static_cast<std::size_t>(random_.below(sums ? 3 : 5))];
  }

  /// `is_ordered`: what comes out depends on the order of the tiles of a row, or it is not free.
  std::string tile(bool predicts, bool is_ordered, bool may_descend) {
    std::string fields;
    const auto number = [&](const char* name, const std::vector<int>& values) {
      add(fields, name, std::to_string(random_.pick(values)));
    };
    if (!predicts && random_.chance(30)) number("q", {64, 128});
    if (!predicts && random_.chance(30)) number("k", {32, 64, 128});
    if (random_.chance(15)) number("stages", {2, 3});
    const bool descends = may_descend && random_.chance(25);
    if (is_ordered || descends) add(fields, "order", descends ? "\"descending\"" : "\"ascending\"");
    if (!is_ordered && random_.chance(15)) number("split_kv", {2, 4, 7});
    return fields;
  }

  /// Those that the formulas name: one that nothing reads is an error. Some with the range that
  /// their values have.
  std::string parameters(const std::string& body) {
    std::string declared;
    for (const ParamSymbol& symbol : symbols_) {
      if (!names(body, symbol.name)) continue;
      std::string dims, fields;
      for (const ParamDim& dim : symbol.shape) dims += (dims.empty() ? "" : ", ") + name_of(dim);
      add(fields, "shape", dims.empty() ? "\"scalar\"" : "\"[" + dims + "]\"");
      if (symbol.type == ExprType::kI32) add(fields, "type", "\"i32\"");
      const ParamRange& range = range_of(symbol.name);
      if (symbol.type == ExprType::kI32 && random_.chance(30)) {
        add(fields, "range",
            "[" + std::to_string(static_cast<int>(range.low)) + ", " +
                std::to_string(static_cast<int>(range.high)) + "]");
      }
      if (symbol.monotone) add(fields, "monotone", "true");
      if (!symbol.monotone) add(fields, "default", "1");
      add(fields, "doc", "\"drawn\"");
      add(declared, symbol.name.c_str(), "{" + fields + "}", "\n  ");
    }
    return declared.empty() ? "" : ",\n \"params\": {" + declared + "}";
  }

  static bool names(const std::string& text, const std::string& name) {
    const auto is_word = [&](std::size_t at) {
      return at < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool is_key = text.compare(end, 2, "\":") == 0;  // of the JSON text
      if (!is_key && (at == 0 || !is_word(at - 1)) && !is_word(end)) return true;
    }
    return false;
  }

  Random random_;
  std::vector<ParamSymbol> symbols_;
};

}  // namespace lacuna::test
