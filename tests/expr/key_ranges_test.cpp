// Masks that bound k, as ranges of keys: their text, and that they hold the keys that the mask lets
// through.
#include "compiler/expr/bounds/key_ranges.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

const std::vector<ParamSymbol> kMaskParameters = {
    {"start", ExprType::kI32, {ParamAxis::kNQ}, false},
    {"window", ExprType::kI32, {}, false},
    {"bias", ExprType::kF32, {}, false},
    {"chunk", ExprType::kI32, {}, false, 1},
    {"part", ExprType::kI32, {ParamAxis::kHeads}, false, 1, 1 << 16},
    {"back", ExprType::kI32, {}, false, 0, 1 << 10},
    {"lengths", ExprType::kI32, {ParamAxis::kNQ}, false, 1},
};

Expr parsed_mask(const std::string& text) {
  const ParsedExpr result = parse_expr(text, Site::kMask, kMaskParameters);
  EXPECT_TRUE(result.ok()) << text << (result.ok() ? "" : ": " + result.errors[0].message);
  return result.expr;
}

/// "first to last, first to last"
std::string key_ranges_of(const std::string& text) {
  std::string all;
  for (const KeyRange& range : key_ranges(parsed_mask(text))) {
    const auto bound = [](const Expr& expr) { return expr.empty() ? "" : print_expr(expr); };
    all += (all.empty() ? "" : ", ") + bound(range.first) + " to " + bound(range.last);
  }
  return all;
}

TEST(key_ranges, come_from_bounds_on_k) {
  EXPECT_EQ(key_ranges_of("k <= q + n_k - n_q"), " to q + n_k - n_q");
  EXPECT_EQ(key_ranges_of("k >= start[q] and k <= q"), "start[q] to q");
  EXPECT_EQ(key_ranges_of("q - k < window"), "q - window + 1 to ");
  EXPECT_EQ(key_ranges_of("k == q"), "q to q");
  EXPECT_EQ(key_ranges_of("not k <= q"), "q + 1 to ");
}

TEST(key_ranges, are_two_at_most) {
  EXPECT_EQ(key_ranges_of("k <= q and (k < 4 or q - k < 8)"), " to min(q, 3), q - 7 to q");
  EXPECT_EQ(key_ranges_of("k == 1 or k == 2 or k == 3"), "");
}

TEST(key_ranges, come_from_the_smaller_and_the_larger_of_two) {
  EXPECT_EQ(key_ranges_of("k <= min(q, start[q])"), " to min(q, start[q])");
  EXPECT_EQ(key_ranges_of("max(q - k, k - q) < window"), "q - window + 1 to window - (0 - q) - 1");
  EXPECT_EQ(key_ranges_of("min(k - 4, q - k) < 0"), " to 3, q + 1 to ");
  EXPECT_EQ(key_ranges_of("window >= max(k, q - k)"), "q - window to window");
  EXPECT_EQ(key_ranges_of("min(k, q - k) >= 2"), "2 to q - 2");
}

TEST(key_ranges, come_from_absolute_values) {
  EXPECT_EQ(key_ranges_of("abs(q - k) <= window"), "q - window to window - -q");
  EXPECT_EQ(key_ranges_of("abs(q - k) > 2"), " to q - 3, 2 - -q + 1 to ");
}

TEST(key_ranges, come_from_quotients) {
  EXPECT_EQ(key_ranges_of("k // 64 <= q // 64"), " to q // 64 * 64 + 63");
  EXPECT_EQ(key_ranges_of("q // 64 == k // 64"), "q // 64 * 64 to q // 64 * 64 + 63");
  EXPECT_EQ(key_ranges_of("(q - k) // 8 < 2 and k <= q"), "q - 15 to q");
  EXPECT_EQ(key_ranges_of("q // 64 - k // 64 < 4"), "(q // 64 - 4) * 64 + 64 to ");
  for (const char* text : {"k // window <= q", "k // -4 < q", "k // 64 == window * window",
                           "k // 512 >= 2147483647", "k // 2 - 2147483647 > 5"})
    EXPECT_EQ(key_ranges_of(text), "") << text;
}

TEST(key_ranges, come_from_quotients_by_a_parameter_of_at_least_one) {
  EXPECT_EQ(key_ranges_of("k // chunk == q // chunk"),
            "q - q % chunk to q - q % chunk + chunk - 1");
  EXPECT_EQ(key_ranges_of("k // chunk <= q // chunk"), " to q - q % chunk + chunk - 1");
  EXPECT_EQ(key_ranges_of("k // chunk >= q // chunk - 3"), "q - q % chunk - 3 * chunk to ");
  EXPECT_EQ(key_ranges_of("q // part - k // part < 2"), "q - q % part - 2 * part + part to ");
  EXPECT_EQ(key_ranges_of("k // chunk < 5"), " to 5 * chunk - 1");
  // Numbers that fit i32 by what is declared.
  EXPECT_EQ(key_ranges_of("k // part >= q // part - back"), "q - q % part - back * part to ");
  for (const char* text :
       {"k // chunk <= q", "k // window == q // window", "k // chunk == q // window",
        "k // back == q // back", "k // chunk >= q // chunk - back", "k // part < window",
        "k // chunk == start[q] // 3", "k // lengths[q] == q // lengths[q]"})
    EXPECT_EQ(key_ranges_of(text), "") << text;
}

TEST(key_ranges, are_none_where_k_is_not_bounded) {
  for (const char* text : {"k % 2 == 0", "k * 2 <= q", "k * bias < 3.0", "k != q", "k * k < q"})
    EXPECT_EQ(key_ranges_of(text), "") << text;
}

TEST(key_ranges, hold_the_keys_that_the_mask_lets_through) {
  const std::int32_t starts[] = {0, 0, 2, 3, 3, 5, 6, 7};
  const std::int32_t parts[] = {2};
  std::vector<ParamView> views(7);
  views[0].data = starts, views[0].extent[0] = 8, views[0].stride[0] = 1;
  views[1].value.i32 = 3;
  views[3].value.i32 = 3;
  views[4].data = parts, views[4].extent[0] = 1;
  views[5].value.i32 = 1;
  for (const char* text : {"max(q - k, k - q) < window",
                           "min(k - 4, q - k) < 0",
                           "k <= q",
                           "k > q",
                           "q >= k and start[q] <= k",
                           "k <= q and (k < 2 or q - k < window)",
                           "q + n_k < n_q + k",
                           "k == start[q] + 1",
                           "h == 0 and k < q",
                           "h == 1 or k < q",
                           "abs(q - k) <= 2",
                           "abs(k - 3) >= window",
                           "3 > abs(q - k - 1)",
                           "k // 3 <= q // 3",
                           "k // 3 == q // 3",
                           "q // 2 < k // 2",
                           "(q - k) // 2 >= 1",
                           "(k - q) // 2 == -1",
                           "1 < abs(k // 2 - 2)",
                           "k // 2 - q // 2 < 1",
                           "q // 3 - k // 3 == 1",
                           "1 + abs(k - q) < window",
                           "k // chunk == q // chunk",
                           "k // chunk <= (q + n_k - n_q) // chunk and k <= q",
                           "q // chunk - k // chunk < 2 and k // chunk < 2",
                           "k // chunk > q // chunk - 1",
                           "(k + 1) // chunk <= (q - 2) // chunk",
                           "k <= q and k // part >= q // part - back",
                           "k >= q - q % chunk and k <= q",
                           "q % 2 == 0 and k <= q or k == 7"}) {
    const Expr mask = parsed_mask(text);
    const std::vector<KeyRange> ranges = key_ranges(mask);
    ASSERT_FALSE(ranges.empty()) << text;
    for (int at = 0; at < 64; ++at) {
      Bindings bindings;
      bindings.parameters = views;
      bindings.set(Variable::kQ, at / 8), bindings.set(Variable::kK, at % 8);
      bindings.set(Variable::kNQ, 8), bindings.set(Variable::kNK, 8), bindings.set(Variable::kH, 0);
      bool is_inside = false;
      for (const KeyRange& range : ranges) {
        const bool is_behind = range.first.empty() || evaluate(range.first, bindings).i32 <= at % 8;
        is_inside |=
            is_behind && (range.last.empty() || at % 8 <= evaluate(range.last, bindings).i32);
      }
      EXPECT_EQ(is_inside, evaluate(mask, bindings).boolean)
          << text << ", q " << at / 8 << ", k " << at % 8;
    }
  }
}

}  // namespace
}  // namespace lacuna
