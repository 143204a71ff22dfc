#include "compiler/expr/evaluate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

using enum ParamAxis;
constexpr std::int32_t kI32Min = std::numeric_limits<std::int32_t>::min();
const float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<ParamSymbol> kEvaluatedParameters = {
    {"tau", ExprType::kF32, {}, false},
    {"table", ExprType::kI32, {kHeads, kNQ}, false},
};

std::int32_t integer(const char* text, std::int32_t n_q, std::int32_t n_k) {
  const ParsedExpr parsed = parse_expr(text, Site::kLaunch, {});
  EXPECT_TRUE(parsed.ok()) << text;
  Bindings bindings;
  bindings.set(Variable::kNQ, n_q);
  bindings.set(Variable::kNK, n_k);
  return evaluate(parsed.expr, bindings).i32;
}

float real(const char* text, float s) {
  const ParsedExpr parsed = parse_expr(text, Site::kScore, {});
  EXPECT_TRUE(parsed.ok()) << text;
  Bindings bindings;
  bindings.set(Variable::kS, s);
  return evaluate(parsed.expr, bindings).f32;
}

TEST(evaluate, floor_division_rounds_toward_minus_infinity) {
  const std::int32_t values[] = {kI32Min, -65, -64, -7, -1, 0, 1, 6, 64, 100, 2147483647};
  for (const std::int32_t a : values) {
    for (const std::int32_t b : values) {
      const std::int64_t exact =
          b == 0 ? 0 : static_cast<std::int64_t>(std::floor(static_cast<double>(a) / b));
      const auto wrapped = static_cast<std::int32_t>(exact);  // INT_MIN // -1
      EXPECT_EQ(integer("n_q // n_k", a, b), wrapped) << a << " // " << b;
      const auto rest = static_cast<std::int32_t>(a - exact * b);
      EXPECT_EQ(integer("n_q % n_k", a, b), rest) << a << " % " << b;
    }
  }
}

TEST(evaluate, bits_are_those_of_twos_complement) {
  EXPECT_EQ(integer("n_q & n_k", -6, 11), 10);
  EXPECT_EQ(integer("n_q | n_k", -6, 3), -5);
  EXPECT_EQ(integer("n_q ^ n_k", -6, 3), -7);
  EXPECT_EQ(integer("n_q & 63", -1, 0), 63);
  EXPECT_EQ(integer("1 + n_q << 2 | n_k", 2, 1), 13)
      << "sums bind tighter than shifts, those than |";
  EXPECT_EQ(integer("n_q << n_k", 3, 31), kI32Min);
  EXPECT_EQ(integer("n_q << n_k", 3, 32), 0);
  EXPECT_EQ(integer("n_q << n_k", 3, -1), 3);
  EXPECT_EQ(integer("n_q << 4", kI32Min, 0), 0);
  EXPECT_EQ(integer("n_q >> n_k", -5, 1), -3);
  EXPECT_EQ(integer("n_q >> n_k", -5, 40), -1);
  EXPECT_EQ(integer("n_q >> n_k", 5, 32), 0);
  EXPECT_EQ(integer("n_q >> n_k", 5, -3), 5);
}

/// Values of the reference implementation.
TEST(evaluate, hash_is_murmur3) {
  EXPECT_EQ(integer("hash(n_q, n_k)", 0, 0), 593689054);
  EXPECT_EQ(integer("hash(n_q, n_k)", 1, 0), 2028806445);
  EXPECT_EQ(integer("hash(n_q, n_k)", 0, 1), -68075478);
  EXPECT_EQ(integer("hash(n_q, n_k)", -1, 123456789), -366388042);
}

TEST(evaluate, int_rounds_toward_zero_and_saturates) {
  const auto truncated = [](float s) { return real("int(s) * 1.0", s); };
  EXPECT_EQ(truncated(2.75F), 2);
  EXPECT_EQ(truncated(-2.75F), -2);
  EXPECT_EQ(truncated(kInfinity), 2147483648.0F);
  EXPECT_EQ(truncated(-1e20F), -2147483648.0F);
  EXPECT_EQ(truncated(std::nanf("")), 0);
}

TEST(evaluate, integers_wrap) {
  EXPECT_EQ(integer("n_q + n_k", 2147483647, 1), kI32Min);
  EXPECT_EQ(integer("n_q - n_k", kI32Min, 1), 2147483647);
  EXPECT_EQ(integer("n_q * n_k", 1103515245, 12345),
            static_cast<std::int32_t>(1103515245u * 12345u));
  EXPECT_EQ(integer("-n_q", kI32Min, 0), kI32Min);
  EXPECT_EQ(integer("abs(n_q)", kI32Min, 0), kI32Min);
  EXPECT_EQ(integer("bit_length(n_q)", kI32Min, 0), 32);
  EXPECT_EQ(integer("bit_length(n_q)", 0, 0), 0);
  EXPECT_EQ(integer("bit_length(n_q)", -255, 0), 8);
}

TEST(evaluate, f32_follows_ieee) {
  EXPECT_EQ(real("s / 0", 1), kInfinity);
  EXPECT_TRUE(std::isnan(real("s / 0", 0)));
  EXPECT_TRUE(std::isnan(real("s - s", kInfinity)));
  EXPECT_EQ(real("min(s, 3)", std::nanf("")), 3.0f);
  EXPECT_EQ(real("max(3, s)", std::nanf("")), 3.0f);
  EXPECT_EQ(real("select(s == s, 1, 2)", std::nanf("")), 2.0f);
  EXPECT_EQ(real("select(not s < 0, 1, 2)", std::nanf("")), 1.0f);
  EXPECT_EQ(real("log(s)", 0), -kInfinity);
  EXPECT_EQ(real("exp(s)", -kInfinity), 0.0f);
  EXPECT_EQ(real("floor(s) + ceil(s)", -1.5f), -3.0f);
  EXPECT_EQ(real("50 * tanh(s / 50)", 25), 50 * std::tanh(25.0f / 50));
  EXPECT_EQ(real("sqrt(exp2(s)) + log2(s)", 4), 4.0f + 2.0f);
}

TEST(evaluate, parameter_indices_are_clamped_and_broadcast) {
  const std::vector<std::int32_t> data = {0, 1, 2, 3, 10, 11, 12, 13};
  ParamView tau, table;
  tau.value.f32 = 0.25f;
  table.data = data.data();
  table.extent[0] = 2;
  table.extent[1] = 4;
  table.stride[0] = 4;
  table.stride[1] = 1;
  const auto at = [&](const char* text, std::int32_t h, std::int32_t q) {
    const ParamView views[] = {tau, table};
    Bindings bindings;
    bindings.parameters = views;
    bindings.set(Variable::kH, h);
    bindings.set(Variable::kQ, q);
    const ParsedExpr parsed = parse_expr(text, Site::kScore, kEvaluatedParameters);
    EXPECT_TRUE(parsed.ok()) << text;
    return evaluate(parsed.expr, bindings).f32;
  };
  EXPECT_EQ(at("table[q]", 1, 2), 12.0f);
  EXPECT_EQ(at("table[q + 5]", 1, 2), 13.0f);
  EXPECT_EQ(at("table[q - 9]", 1, 2), 10.0f);
  EXPECT_EQ(at("table[7, q]", 0, 0), 10.0f);
  EXPECT_EQ(at("table[1 - 2147483647, q]", 1, 3), 3.0f);
  EXPECT_EQ(at("tau", 0, 0), 0.25f);
  table.data = nullptr;
  table.value.i32 = 77;
  EXPECT_EQ(at("table[q]", 1, 2), 77.0f);
}

TEST(evaluate, long_expressions_work_as_short_ones) {
  std::string text = "n_q";
  for (int n = 1; n <= 300; ++n) text += " * n_k + " + std::to_string(n);
  // n_q * n_k + 1 * n_k + 2 * n_k + ... + 299 * n_k + 300
  EXPECT_EQ(integer(text.c_str(), 3, 5), 3 * 5 + 299 * 300 / 2 * 5 + 300);
}

}  // namespace
}  // namespace lacuna
