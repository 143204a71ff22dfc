// Random specs that are nearly always legal, from a seed: every kind of formula, shape of a
// parameter, gate, predictor, quantisation and tile, in combinations that nobody wrote.
#pragma once

#include <string>
#include <vector>

#include "tests/expr/random_expr.hpp"

namespace lacuna::test {

class RandomSpec {
 public:
  explicit RandomSpec(std::uint64_t seed) : random_(seed) {
    symbols_ = random_parameters(random_, {}, false).symbols;
    symbols_.push_back({"stride", ExprType::kI32, {}, false});
    symbols_.push_back({"bias", ExprType::kF32, {ParamAxis::kHeads, ParamAxis::kNK}, false});
    symbols_.push_back({"doc_q", ExprType::kI32, {ParamAxis::kBatch, ParamAxis::kNQ}, false});
    symbols_.push_back({"doc_k", ExprType::kI32, {ParamAxis::kBatch, ParamAxis::kNK}, false});
  }

  std::string text() {
    std::string body;
    std::string attention;
    add(attention, "mask", mask());
    add(attention, "score", random_.chance(50) ? score() : "");
    if (random_.chance(20)) add(attention, "lse", "true", false);
    if (!attention.empty()) body += ",\n \"attention\": {" + attention + "}";
    const bool predicts = random_.chance(25), gates = random_.chance(30);
    if (predicts) body += ",\n \"predictor\": " + predictor();
    if (gates) body += ",\n \"gate\": " + gate();
    if (random_.chance(20)) body += ",\n \"quantise\": " + quantise();
    const std::string tiles = tile(predicts, gates);
    if (!tiles.empty()) body += ",\n \"tile\": {" + tiles + "}";
    return "{\"version\": 1, \"name\": \"random\"" + parameters(body) + body + "}\n";
  }

  int head_dim() { return random_.pick(std::vector<int>{64, 64, 96, 128, 128, 128, 256}); }
  bool is_f16() { return random_.chance(30); }

 private:
  static void add(std::string& object, const char* key, const std::string& value,
                  bool is_text = true) {
    if (value.empty()) return;
    const char* quote = is_text ? "\"" : "";
    object +=
        (object.empty() ? "" : ", ") + std::string("\"") + key + "\": " + quote + value + quote;
  }

  std::string formula(Site site, int depth) {
    return RandomExpr(random_, site, symbols_).text(depth);
  }

  std::string mask() {
    static const std::vector<std::string> kMasks = {"",
                                                    "k <= q + n_k - n_q",
                                                    "k <= q and k > q - window",
                                                    "doc_q[b, q] == doc_k[b, k]",
                                                    "doc_q[b, q] == doc_k[b, k] and k <= q",
                                                    "k // stride <= q // stride",
                                                    "(q - k) % stride == 0 or q - k < window",
                                                    "k < 64 or abs(q - k) < limit",
                                                    "k <= start[q] or k % stride == h",
                                                    "document[h, k] == group[q] and k <= q",
                                                    "k // limit % 2 == q // stride % 2"};
    return random_.chance(75) ? random_.pick(kMasks) : formula(Site::kMask, 2);
  }

  std::string score() {
    static const std::vector<std::string> kScores = {
        "s - slope * (q - k)",
        "tau * tanh(s / tau)",
        "s * tau",
        "s + bias[h, q - k]",
        "s + bias[h, (q - k) // stride]",
        "select(doc_q[b, q] == doc_k[b, k], s, s - 4)",
        "s * ((k + q) % stride) - slope * bit_length(q - k)",
        "s + level[k] - slope * (q // stride - k // limit)",
        "tau * tanh(s / tau) - slope * abs(q - k)"};
    return random_.chance(75) ? random_.pick(kScores) : "s + " + formula(Site::kScore, 2);
  }

  std::string predictor() {
    static const std::vector<std::string> kPredictors = {
        R"({"tile": {"q": 128, "k": 128}, "keep": "k0 < limit or k1 > q0 - window"})",
        R"({"tile": {"q": 128, "k": 64}, "keep": "j % stride == i % stride or j == 0"})",
        R"({"tile": {"q": 64, "k": 32}, "keep": "i // stride == j // limit"})",
        R"({"tile": {"q": 64, "k": 64}, "keep": "p > tau or rank < limit",
            "estimate": {"q": "mean", "k": "mean", "normalise": "softmax"}})",
        R"({"tile": {"q": 128, "k": 128}, "keep": "mass_before < tau or rank < stride",
            "estimate": {"q": "mean", "k": "mean", "normalise": "softmax"}})",
        R"json({"tile": {"q": 128, "k": 64}, "keep": "p > tau or j % stride == 0",
            "estimate": {"q": "mean(8)", "k": "mean(8)", "normalise": "row_max"}})json",
        R"({"tile": {"q": 128, "k": 64}, "keep": "p > tau",
            "estimate": {"q": "tokens", "k": "tokens", "bits": 8}})",
        R"([{"tile": {"q": 128, "k": 64}, "keep": "i // stride >= j // limit"},
            {"within": true, "tile": {"q": 128, "k": 64}, "keep": "p > tau or j == 0",
             "estimate": {"q": "mean", "k": "mean", "normalise": "softmax"}}])"};
    return random_.pick(kPredictors);
  }

  std::string gate() {
    static const std::vector<std::string> kGates = {
        R"("skip": "gap < slope", "skips": ["pv"])",
        R"("skip": "gap < slope", "skips": ["exp", "pv"])",
        R"("skip": "tile_max < tau", "skips": ["exp", "pv"])",
        R"("skip": "tile_max < threshold", "exempt": "k1 >= q0", "skips": ["exp", "pv"])",
        R"("skip": "gap < tau and j % stride != 0", "skips": ["exp", "pv"])"};
    const std::string rule = random_.pick(kGates);
    if (random_.chance(40)) return "{\"scope\": \"warp\", " + rule + "}";
    const bool loads = random_.chance(50);
    const std::size_t end = rule.size() - 1;
    return "{\"scope\": \"tile\", " + (loads ? rule.substr(0, end) + ", \"v_load\"]" : rule) + "}";
  }

  std::string quantise() {
    static const std::vector<std::string> kForms = {
        R"({"qk": {"bits": 8, "group": "block"}})", R"({"qk": {"bits": 8, "group": "warp"}})",
        R"({"qk": {"bits": 8, "group": "thread"}})",
        R"({"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}})"};
    return random_.pick(kForms);
  }

  std::string tile(bool predicts, bool gates) {
    std::string fields;
    const auto number = [&](const char* name, const std::vector<int>& values) {
      add(fields, name, std::to_string(random_.pick(values)), false);
    };
    if (!predicts && random_.chance(20)) number("q", {64, 128});
    if (!predicts && random_.chance(20)) number("k", {32, 64, 128});
    if (random_.chance(15)) number("stages", {2, 3});
    if (random_.chance(20)) add(fields, "order", "descending");
    if (!gates && random_.chance(15)) number("split_kv", {4});
    return fields;
  }

  /// Those that the formulas name: one that nothing reads is an error.
  std::string parameters(const std::string& body) const {
    std::string declared;
    for (const ParamSymbol& symbol : symbols_) {
      if (!names(body, symbol.name)) continue;
      std::string dims;
      for (const ParamDim& dim : symbol.shape) dims += (dims.empty() ? "" : ", ") + name_of(dim);
      declared += (declared.empty() ? "" : ",\n  ") + ("\"" + symbol.name) + "\": {\"shape\": \"" +
                  (dims.empty() ? "scalar" : "[" + dims + "]") + "\"" +
                  (symbol.type == ExprType::kI32 ? ", \"type\": \"i32\"" : "") +
                  (symbol.monotone ? ", \"monotone\": true" : "") +
                  (symbol.monotone ? "" : ", \"default\": 1") + ", \"doc\": \"drawn\"}";
    }
    return declared.empty() ? "" : ",\n \"params\": {" + declared + "}";
  }

  static bool names(const std::string& text, const std::string& name) {
    const auto is_word = [&](std::size_t at) {
      return at < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      if ((at == 0 || !is_word(at - 1)) && !is_word(at + name.size())) return true;
    }
    return false;
  }

  Random random_;
  std::vector<ParamSymbol> symbols_;
};

}  // namespace lacuna::test
