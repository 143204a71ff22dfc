// What is said of many times.
#include "tools/common/spread.hpp"

#include <gtest/gtest.h>

namespace lacuna::tools {
namespace {

TEST(Spread, ATenthOfTheTimesIsBeyond) {
  std::vector<double> times;
  for (int i = 100; i >= 0; --i) times.push_back(i);
  const Spread spread = spread_of(times);
  EXPECT_EQ(spread.median_us, 50);
  EXPECT_EQ(spread.low_us, 10);
  EXPECT_EQ(spread.high_us, 90);
}

TEST(Spread, OfAnEvenNumberTheMedianIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(spread_of({8, 1, 4, 2}).median_us, 3);
  EXPECT_EQ(spread_of({4, 1}).median_us, 2.5);
}

TEST(Spread, OfOneTimeAllIsThatTime) {
  const Spread spread = spread_of({7});
  EXPECT_EQ(spread.median_us, 7);
  EXPECT_EQ(spread.low_us, 7);
  EXPECT_EQ(spread.high_us, 7);
}

}  // namespace
}  // namespace lacuna::tools
