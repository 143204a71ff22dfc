// Predictors of random specs: every kind of estimate with rules that read what it gives.
#pragma once

#include <string>
#include <vector>

#include "tests/expr/random_expr.hpp"

namespace lacuna::test {

class RandomPredictor {
 public:
  /// `has_integers`: attend's operands are, which is what smoothing may be for.
  RandomPredictor(Random& random, bool has_integers)
      : random_(random), has_integers_(has_integers) {}

  /// The value of the field `predictor`.
  std::string text() {
    if (random_.chance(12)) return columns();
    static const std::vector<std::string> kTiles = {
        R"("q": 128, "k": 128)", R"("q": 128, "k": 64)", R"("q": 64, "k": 64)",
        R"("q": 64, "k": 32)",   R"("q": 256, "k": 64)", R"("q": 64, "k": 128)"};
    const std::string tile = "{\"tile\": {" + random_.pick(kTiles) + "}, ";
    const std::string shared = random_.chance(12) ? R"("heads": "shared", )" : "";
    if (!random_.chance(20)) return tile + shared + step(true) + "}";
    const std::string first = tile + step(false) + "}";
    const std::string how = random_.chance(50) ? R"("within": true, )" : R"("union": true, )";
    return "[" + first + ",\n  " + tile + how + shared + step(false) + "}]";
  }

  /// Does the last text want columns, which are gathered?
  bool gathers() const { return gathers_; }
  /// Does it look at which pairs are visible, for more than to leave a tile out?
  bool asks_pairs() const { return asks_pairs_; }

 private:
  std::string columns() {
    static const std::vector<std::string> kColumns = {
        R"({"tile": {"q": 128, "k": 1}, "keep": "j % stride == h or q0 - j < window")",
        R"({"tile": {"q": 64, "k": 1}, "keep": "j < limit")",
        R"({"tile": {"q": 64, "k": 8}, "keep": "j % 3 == i % 2 or k1 > q0 - window")",
        R"({"tile": {"q": 64, "k": 8}, "keep": "p > theta / n_j",
            "estimate": {"q": "tokens", "k": "tokens", "reduce": "sum", "normalise": "softmax"})",
        R"({"tile": {"q": 64, "k": 1}, "keep": "p > theta",
            "estimate": {"q": "tokens", "k": "tokens", "normalise": "row_max"})"};
    const std::string chosen = random_.pick(kColumns);
    gathers_ = true;
    asks_pairs_ = asks_pairs_ || chosen.find("estimate") != std::string::npos;
    return chosen + "}";
  }

  /// All but the tile; `may_smooth`: it is the only step.
  std::string step(bool may_smooth) {
    if (random_.chance(30)) return place();
    asks_pairs_ = true;
    if (random_.chance(15)) return given();
    return compared(may_smooth);
  }

  std::string place() {
    static const std::vector<std::string> kPlaces = {"k0 < limit or k1 > q0 - window",
                                                     "j % 3 == i % 2 or j == 0",
                                                     "i // 2 >= j // 3",
                                                     "hash(hash(limit, h), i) >> (j & 31) & 1 == 1",
                                                     "(i ^ j) & count != 1 or j == n_j - 1",
                                                     "similar_k < theta or i == j",
                                                     "similar_q + similar_k < 2 * theta or j == 0"};
    return "\"keep\": \"" + random_.pick(kPlaces) + "\"";
  }

  /// Scores that the spec says itself.
  std::string given() {
    static const std::vector<std::string> kScores = {"slope * (k0 - q0)", "-abs(i - j) * theta",
                                                     "bucket[j] - slope * i"};
    const std::string from = "\"from\": \"" + random_.pick(kScores) + "\"";
    return R"("estimate": {)" + from + ", " + normalised({"none", "row_max", "softmax"}, false);
  }

  std::string compared(bool may_smooth) {
    struct Pair {
      const char *q, *k;
    };
    static const std::vector<Pair> kPairs = {{"mean", "mean"},
                                             {"mean", "mean"},
                                             {"mean", "min_max"},
                                             {"mean", "tokens"},
                                             {"mean(8)", "mean(8)"},
                                             {"mean(4)", "mean(16)"},
                                             {"mean(32)", "mean(8)"},
                                             {"tokens", "tokens"},
                                             {"tokens", "tokens"},
                                             {"last(64)", "tokens"},
                                             {"last(7)", "tokens"},
                                             {"stride(16)", "tokens"},
                                             {"antidiagonal(8)", "antidiagonal(8)"},
                                             {"antidiagonal(16)", "antidiagonal(16)"}};
    const Pair pair = random_.pick(kPairs);
    const std::string q = pair.q, k = pair.k;
    std::string fields = "\"q\": \"" + q + "\", \"k\": \"" + k + "\", ";
    const bool integers = q == "tokens" && random_.chance(50);
    if (integers) {
      fields += random_.chance(50) ? R"("bits": 8, )" : R"("bits": 4, )";
      static const std::vector<std::string> kGroups = {"block", "warp", "thread"};
      if (random_.chance(70)) fields += "\"group\": \"" + random_.pick(kGroups) + "\", ";
    }
    const bool is_exact = (q == "tokens" || q.starts_with("stride")) && random_.chance(15);
    if (!integers && !is_exact && random_.chance(15))
      fields += random_.chance(50) ? R"("dims": "0:32,48:64", )" : R"("dims": "16:64", )";
    if (!is_exact && random_.chance(20)) fields += R"("temperature": 1.5, )";
    const bool tiles = q == "mean" && k == "mean";
    if (tiles && random_.chance(25)) {
      static const std::vector<std::string> kExcluded = {"similar_k < theta", "(i + j) % 3 == 1",
                                                         "similar_q < theta and i != j"};
      fields += "\"exclude\": \"" + random_.pick(kExcluded) + "\", ";
    }
    std::string before;
    const bool is_smoothed = integers || k.starts_with("mean") || has_integers_;
    if (may_smooth && is_smoothed && random_.chance(30)) {
      const bool both = (integers || has_integers_) && random_.chance(50);
      before = both ? R"("smooth": ["q", "k"], )" : R"("smooth": ["k"], )";
    }
    before += R"("estimate": {)" + fields;
    if (is_exact && random_.chance(50))
      before += R"("reference": "k < limit or abs(q - k) < limit // 2", )";
    if (is_exact) return before + rule("lse", random_.chance(50));
    return before + normalised({"softmax", "row_max", "none"}, true);
  }

  /// What is left of an estimate, and the rule; the first forms are drawn most.
  std::string normalised(const std::vector<std::string>& forms, bool may_sum) {
    const int draw = random_.below(10);
    const std::string& form = forms[draw < 6 ? 0 : draw < 8 ? 1 : 2];
    return rule(form, may_sum && form != "row_max" && random_.chance(40));
  }

  std::string rule(const std::string& normalise, bool sums) {
    static const std::vector<std::string> kOfLogits = {"score > least or j == i", "rank < count",
                                                       "rank < 2 or p > least and j % 2 == 0"};
    static const std::vector<std::string> kOfWeights = {"p > theta",
                                                        "p > theta or rank < count",
                                                        "mass_before < mass",
                                                        "rank < mass * visible",
                                                        "mass_before < mass or j == 0",
                                                        "p >= theta * p_max",
                                                        "p > theta or k1 > q0 - window"};
    const std::string keep = random_.pick(normalise == "none" ? kOfLogits : kOfWeights);
    std::string fields = "\"normalise\": \"" + normalise + "\"";
    if (sums) fields += R"(, "reduce": "sum")";
    return fields + "}, \"keep\": \"" + keep + "\"";
  }

  Random& random_;
  bool has_integers_, gathers_ = false, asks_pairs_ = false;
};

}  // namespace lacuna::test
