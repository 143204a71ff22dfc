// Lowered expressions against the interpreter, on random expressions.
//
// The plugin shows an expression's values through attention itself: with V[k] = e_k, o tells which
// keys a mask leaves visible; with the mask `k == q`, lse is the score of (q, q).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/expr/random_expr.hpp"
#include "tests/host/run.hpp"

namespace lacuna::host_tests {
namespace {

using lacuna::test::ParameterSet;
using lacuna::test::ProblemSize;
using lacuna::test::Random;
using lacuna::test::random_parameters;
using lacuna::test::RandomExpr;

constexpr int kTokens = 48;
constexpr int kHeads = 3;
constexpr ProblemSize kSize{.batch = 2, .heads = kHeads, .n_q = kTokens, .n_k = kTokens};

Expr parsed(const std::string& text, Site site, const std::vector<ParamSymbol>& symbols) {
  const ParsedExpr result = parse_expr(text, site, symbols);
  EXPECT_TRUE(result.ok()) << text;
  return result.expr;
}

/// A dense f32 program whose mask and score are replaced. Its tiles are never classified as full or
/// empty, so that every pair is asked.
Program program_with(const Expr& mask, const Expr& score, const ParameterSet& set) {
  Program program =
      program_of(R"json({"version": 1, "name": "probe", "attention": {"scale": 1}})json", kTokens,
                 DType::kF32);
  for (const ParamSymbol& symbol : set.symbols)
    program.params.push_back({.symbol = symbol,
                              .minimum = -std::numeric_limits<double>::infinity(),
                              .maximum = std::numeric_limits<double>::infinity(),
                              .default_value = 0,
                              .has_default = false,
                              .doc = "",
                              .unit = ""});
  auto& attend = std::get<Attend>(program.nodes.back().op);
  attend.mask = mask;
  attend.score = score;
  attend.classifier = {.must = parsed("n_k < 0", Site::kTile, set.symbols),
                       .may = parsed("n_k > 0", Site::kTile, set.symbols)};
  return program;
}

Bindings bindings_of(const ParameterSet& set, int b, int h, int q, int k, float s) {
  Bindings bindings;
  bindings.parameters = set.views;
  bindings.set(Variable::kB, b);
  bindings.set(Variable::kH, h);
  bindings.set(Variable::kQ, q);
  bindings.set(Variable::kK, k);
  bindings.set(Variable::kNQ, kTokens);
  bindings.set(Variable::kNK, kTokens);
  bindings.set(Variable::kNH, kHeads);
  bindings.set(Variable::kS, s);
  return bindings;
}

Inputs inputs_for(const Program& program, const ParameterSet& set) {
  Inputs inputs = make_inputs(
      program, {.n_b = 2, .n_h = kHeads, .n_h_kv = 1, .n_q = kTokens, .n_k = kTokens, .d = kTokens},
      17);
  inputs.params = set.views;
  return inputs;
}

TEST(LoweredMasks, SeeThePairsThatTheInterpreterSees) {
  Random random(2024);
  for (int round = 0; round < 40; ++round) {
    const ParameterSet set = random_parameters(random, kSize, true);
    const std::string text = RandomExpr(random, Site::kMask, set.symbols).text(4);
    const Expr mask = parsed(text, Site::kMask, set.symbols);
    const Program program = program_with(mask, {}, set);
    Inputs inputs = inputs_for(program, set);
    std::fill(inputs.q.begin(), inputs.q.end(), 0.0F);
    for (std::size_t n = 0; n < inputs.v.size(); ++n)
      inputs.v[n] = n / kTokens % kTokens == n % kTokens ? 1.0F : 0.0F;
    const RunResult got = run(program, CompiledKernel(program), inputs);
    ASSERT_EQ(got.error, "") << text;
    std::size_t n = 0;
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < kHeads; ++h)
        for (int q = 0; q < kTokens; ++q)
          for (int k = 0; k < kTokens; ++k)
            ASSERT_EQ(got.outputs.o[n++] > 0,
                      evaluate(mask, bindings_of(set, b, h, q, k, 0)).boolean)
                << text << " at q " << q << " k " << k << " h " << h << " b " << b;
  }
}

/// Distance in units in the last place of f32; 0 if both are NaN.
double ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1e9;
  const auto order = [](float x) {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits < 0 ? static_cast<double>(std::numeric_limits<std::int32_t>::min()) - bits
                    : static_cast<double>(bits);
  };
  return std::abs(order(a) - order(b));
}

/// Scores of all (q, q) for logits `s`, from the compiled code.
std::vector<double> diagonal_scores(const Expr& score, const ParameterSet& set,
                                    const std::vector<float>& s) {
  const Program program = program_with(parsed("k == q", Site::kMask, set.symbols), score, set);
  Inputs inputs = inputs_for(program, set);
  std::fill(inputs.q.begin(), inputs.q.end(), 0.0F);
  std::fill(inputs.k.begin(), inputs.k.end(), 1.0F);
  for (std::size_t n = 0; n * kTokens < inputs.q.size(); ++n)
    inputs.q[n * kTokens] = s[n % s.size()];
  const RunResult got = run(program, CompiledKernel(program), inputs);
  EXPECT_EQ(got.error, "");
  return got.outputs.lse;
}

TEST(LoweredFunctions, AreWithinTwoUnitsInTheLastPlace) {
  const ParameterSet none;
  const struct {
    const char* text;
    double low, high;
  } functions[] = {{"exp(s)", -110, 88},  {"exp2(s)", -151, 127}, {"log(s)", 1e-40, 40},
                   {"log2(s)", 0.3, 3},   {"log(s)", 0.4, 2.5},   {"tanh(s)", -1, 1},
                   {"tanh(s)", -12, 12},  {"sqrt(s)", 0, 1e6},    {"floor(s)", -9, 9},
                   {"ceil(s)", -9, 9},    {"log(s)", 1e10, 1e30}, {"log2(s)", 1e-45, 1e-37},
                   {"exp(s)", -0.5, 0.5}, {"abs(s)", -3, 3}};
  Random random(7);
  for (const auto& f : functions) {
    const Expr score = parsed(f.text, Site::kScore, {});
    std::vector<float> s(2 * kHeads * kTokens);
    for (float& x : s)
      x = static_cast<float>(f.low + (f.high - f.low) * static_cast<double>(random.unit()));
    const std::vector<double> got = diagonal_scores(score, none, s);
    for (std::size_t n = 0; n < s.size(); ++n) {
      const float expected = evaluate(score, bindings_of(none, 0, 0, 0, 0, s[n])).f32;
      EXPECT_LE(ulps(static_cast<float>(got[n]), expected), 2) << f.text << " of " << s[n];
    }
  }
}

TEST(LoweredFunctions, KeepTheirEdges) {
  const ParameterSet none;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* text : {"log(s)", "log2(s)", "exp(-s) - 1", "tanh(s * 1e30)", "sqrt(s)",
                           "min(s, 1.0)", "max(s / s, 2.0)", "exp2(-s * 1e30)"}) {
    const Expr score = parsed(text, Site::kScore, {});
    std::vector<float> s(kTokens, 1.0F);
    s[0] = 0, s[1] = -1, s[2] = 1e-42F, s[3] = 1e38F, s[4] = -0.0F;
    const std::vector<double> got = diagonal_scores(score, none, s);
    for (std::size_t n = 0; n < s.size(); ++n) {
      const float expected = evaluate(score, bindings_of(none, 0, 0, 0, 0, s[n])).f32;
      if (expected == infinity) continue;  // no softmax has an infinite maximum
      EXPECT_LE(ulps(static_cast<float>(got[n]), expected), 2) << text << " of " << s[n];
    }
  }
}

/// exp and its like differ by ulps, and what follows may magnify that: only expressions whose
/// value does not hang on it are compared, by perturbing s.
TEST(LoweredScores, AgreeWithTheInterpreter) {
  Random random(4711);
  int compared = 0;
  for (int round = 0; round < 40; ++round) {
    const ParameterSet set = random_parameters(random, kSize, false);
    const std::string text = RandomExpr(random, Site::kScore, set.symbols).text(3);
    const Expr score = parsed(text, Site::kScore, set.symbols);
    std::vector<float> s(2 * kHeads * kTokens);
    for (float& x : s) x = random.unit() * 8 - 4;
    const std::vector<double> got = diagonal_scores(score, set, s);
    for (std::size_t n = 0; n < s.size(); ++n) {
      const auto row = static_cast<int>(n);
      const int q = row % kTokens, h = row / kTokens % kHeads, b = row / kTokens / kHeads;
      const auto value = [&](float x) {
        return static_cast<double>(evaluate(score, bindings_of(set, b, h, q, q, x)).f32);
      };
      const double expected = value(s[n]);
      if (expected == std::numeric_limits<double>::infinity()) continue;
      if (std::isnan(expected) || std::isinf(expected)) {
        EXPECT_TRUE(got[n] == expected || (std::isnan(got[n]) && std::isnan(expected))) << text;
        continue;
      }
      const double wobble = std::abs(value(s[n] * (1 + 4e-7F)) - expected);
      EXPECT_NEAR(got[n], expected, 8 * wobble + 4e-6 * std::abs(expected) + 1e-30)
          << text << " at q " << q << " h " << h << " b " << b << " s " << s[n];
      ++compared;
    }
  }
  EXPECT_GT(compared, 4000);
}

}  // namespace
}  // namespace lacuna::host_tests
