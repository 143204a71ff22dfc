// Generated token orders: permutations all, Hilbert's without a jump.
#include "runtime/api/token_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "tests/runtime/dense_problem.hpp"

namespace lacuna {
namespace {

using Order = std::vector<std::int32_t>;

Order order_of(TokenOrder kind, int t, int h, int w) {
  const PermuteSpec permute{kind, t, h, w};
  Order order(token_count(permute), -1);
  fill_token_order(permute, order);
  return order;
}

/// Steps along the axes of the field from a token to the next.
int distance(std::int32_t a, std::int32_t b, int h, int w) {
  return std::abs(a / (h * w) - b / (h * w)) + std::abs(a / w % h - b / w % h) +
         std::abs(a % w - b % w);
}

constexpr TokenOrder kGenerated[] = {TokenOrder::kHilbert, TokenOrder::kRowMajor,
                                     TokenOrder::kColumnMajor, TokenOrder::kTimeMajor};

TEST(TokenOrder, EveryTokenOccursOnce) {
  const int shapes[][3] = {{1, 1, 1}, {2, 2, 2}, {3, 5, 7}, {1, 9, 4}, {13, 1, 6}, {8, 30, 45}};
  for (const TokenOrder kind : kGenerated) {
    for (const auto& [t, h, w] : shapes) {
      Order order = order_of(kind, t, h, w);
      std::ranges::sort(order);
      Order all(order.size());
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(order, all) << name_of(kind) << " " << t << " " << h << " " << w;
    }
  }
}

/// Cubes of 2 x 2 x 2 in a field of 2 x 3 x 4: the cubes of the second row are cut off.
TEST(TokenOrder, CubesFollowEachOtherAndAreCutOffAtTheBorders) {
  PermuteSpec permute{TokenOrder::kRowMajor, 2, 3, 4, 2, 2, 2};
  Order order(24);
  fill_token_order(permute, order);
  EXPECT_EQ(order, (Order{0, 1, 4,  5,  12, 13, 16, 17, 2, 3, 6, 7, 14, 15, 18, 19,  //
                          8, 9, 20, 21, 10, 11, 22, 23}));
  permute.order = TokenOrder::kTimeMajor;  // rows, then columns, then frames
  fill_token_order(permute, order);
  EXPECT_EQ(order, (Order{0, 12, 1, 13, 4,  16, 5,  17, 2, 14, 3, 15, 6, 18, 7, 19,  //
                          8, 20, 9, 21, 10, 22, 11, 23}));
}

TEST(TokenOrder, EveryTokenOfCubesOccursOnce) {
  const PermuteSpec fields[] = {{TokenOrder::kHilbert, 5, 9, 13, 2, 4, 3},
                                {TokenOrder::kColumnMajor, 3, 5, 7, 6, 8, 8},
                                {TokenOrder::kTimeMajor, 13, 1, 6, 4, 1, 1},
                                {TokenOrder::kRowMajor, 30, 48, 80, 6, 8, 8}};
  for (const PermuteSpec& permute : fields) {
    Order order(token_count(permute), -1);
    fill_token_order(permute, order);
    if (permute.t == 30) {  // whole cubes: the tokens of each are neighbours in the order
      for (std::size_t n = 0; n < order.size(); ++n) {
        const int first = order[n / 384 * 384];
        ASSERT_EQ(order[n] / 3840 / 6, first / 3840 / 6) << n;
        ASSERT_EQ(order[n] / 80 % 48 / 8, first / 80 % 48 / 8) << n;
        ASSERT_EQ(order[n] % 80 / 8, first % 80 / 8) << n;
      }
    }
    std::ranges::sort(order);
    Order all(order.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all) << name_of(permute.order) << " " << permute.t;
  }
}

TEST(TokenOrder, HilbertVisitsTheSmallestCubeAsAGrayCode) {
  // Token 4 t + 2 h + w.
  EXPECT_EQ(order_of(TokenOrder::kHilbert, 2, 2, 2), (Order{0, 1, 3, 2, 6, 7, 5, 4}));
}

TEST(TokenOrder, HilbertStepsToANeighbourInCubes) {
  for (const int side : {2, 4, 8, 16}) {
    const Order order = order_of(TokenOrder::kHilbert, side, side, side);
    EXPECT_EQ(order.front(), 0);
    for (std::size_t n = 1; n < order.size(); ++n) {
      ASSERT_EQ(distance(order[n - 1], order[n], side, side), 1) << side << " at " << n;
    }
  }
}

TEST(TokenOrder, HilbertKeepsTilesTogether) {
  // 64 tokens in a row of a 16 x 16 x 16 cube are a 4 x 4 x 4 block; in memory order, 4 lines.
  const Order order = order_of(TokenOrder::kHilbert, 16, 16, 16);
  for (std::size_t begin = 0; begin < order.size(); begin += 64) {
    int widest = 0;
    for (std::size_t n = begin; n < begin + 64; ++n) {
      widest = std::max(widest, distance(order[begin], order[n], 16, 16));
    }
    ASSERT_LE(widest, 9) << begin;
  }
}

TEST(TokenOrder, HilbertOfAnyFieldFollowsThatOfItsCube) {
  const Order cube = order_of(TokenOrder::kHilbert, 8, 8, 8);
  Order expected;
  for (const std::int32_t token : cube) {
    const int t = token / 64, h = token / 8 % 8, w = token % 8;
    if (t < 3 && h < 5 && w < 7) expected.push_back((t * 5 + h) * 7 + w);
  }
  EXPECT_EQ(order_of(TokenOrder::kHilbert, 3, 5, 7), expected);
}

TEST(TokenOrder, MajorOrdersNestTheirAxes) {
  // [t][h][w] of 2 x 2 x 3.
  EXPECT_EQ(order_of(TokenOrder::kRowMajor, 2, 2, 3),
            (Order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(order_of(TokenOrder::kColumnMajor, 2, 2, 3),
            (Order{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
  EXPECT_EQ(order_of(TokenOrder::kTimeMajor, 2, 2, 3),
            (Order{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
}

v1::Kernel permuted(const std::string& permute) {
  return dense_problem::cpu_engine().compile(
      Spec::parse(R"({"version": 1, "name": "ordered", "permute": )" + permute + "}",
                  "ordered.json"),
      {64, f32});
}

std::string error_of(const v1::Kernel& kernel, std::size_t count) {
  try {
    kernel.token_order(count);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(TokenOrder, AKernelHandsItsOrderOut) {
  const v1::Kernel kernel = permuted(R"({"column_major": [2, 2, 3]})");
  EXPECT_EQ(kernel.token_order(12), order_of(TokenOrder::kColumnMajor, 2, 2, 3));
  EXPECT_EQ(error_of(kernel, 13),
            "lacuna: error: kernel ordered, count: expected 12 (2 * 2 * 3 tokens), got 13 "
            "[E0503]\n");
  EXPECT_EQ(lacuna_token_order(kernel.handle(), nullptr, 12), LACUNA_ERROR_INPUT);
  EXPECT_STREQ(lacuna_last_error(),
               "lacuna: error: order: expected a place for the tokens, got null [E0503]\n");
}

TEST(TokenOrder, ACallersOwnOrderIsNotGenerated) {
  EXPECT_EQ(error_of(permuted("\"external\""), 12),
            "lacuna: error: kernel ordered: the spec generates no token order; \"permute\" is "
            "external [E0503]\n");
}

}  // namespace
}  // namespace lacuna
