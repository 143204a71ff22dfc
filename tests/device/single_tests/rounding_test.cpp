// quantise/divide.cuh: one product, or two, instead of a division, and the same integers.
#include "tests/device/single/prepare/rounding.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

namespace lacuna::device {
namespace {

int divided(float x, float scale) { return static_cast<int>(std::round(x / scale)); }

TEST(Rounding, ScalesAreQuotients) {
  std::mt19937 random(1);
  for (int n = 0; n < 1'000'000; ++n) {
    const auto largest = std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x7fffffffU));
    if (largest == 0 || std::isnan(largest)) continue;
    ASSERT_EQ(single::scale_of(largest, 7), largest / 7);
    ASSERT_EQ(single::scale_of(largest, 127), largest / 127);
  }
  EXPECT_EQ(single::scale_of(0, 127), 1);
}

/// All pairs of significands of `bits`, the smaller number down to where it rounds to 0.
void expect_elements_rounded(int bits, float range) {
  const int first = 1 << (bits - 1), last = (1 << bits) - 1;
  for (int c = first; c <= last; ++c) {
    const auto largest = static_cast<float>(c);
    const float scale = single::scale_of(largest, range);
    for (int shift = 0; shift < 9; ++shift)
      for (int a = first; a <= last; ++a) {
        const float x = static_cast<float>(a) / static_cast<float>(1 << shift);
        if (x > largest) break;
        ASSERT_EQ(single::round_element(x, largest, range), divided(x, scale))
            << x << " of " << largest;
      }
  }
}

TEST(Rounding, OneProductRoundsElementsOf8Bits) {
  expect_elements_rounded(8, 127);
  expect_elements_rounded(8, 7);
}
TEST(Rounding, OneProductRoundsElementsOf11Bits) {
  expect_elements_rounded(11, 127);
  expect_elements_rounded(11, 7);
}

/// Around every half, where an ulp more or less decides.
TEST(Rounding, TwoProductsRoundOrDoubt) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(0.5F, 2);
  int doubtful = 0, settled = 0;
  for (int n = 0; n < 2000; ++n) {
    const float largest = uniform(random) * std::ldexp(1.0F, n % 60 - 30);
    const float scale = single::scale_of(largest, 127);
    for (float half = 0.5F; half < 127; half += 1) {
      float x = half * scale;
      for (int step = 0; step < 20; ++step) x = std::nextafter(x, 0.0F);
      for (int step = 0; step < 40; ++step, x = std::nextafter(x, largest)) {
        const single::Bracketed rounded = single::bracket(x, scale);
        ++(rounded.is_in_doubt ? doubtful : settled);
        if (rounded.is_in_doubt) continue;
        ASSERT_EQ(rounded.value, divided(x, scale)) << x << " / " << scale;
        ASSERT_EQ(single::bracket(-x, scale).value, divided(-x, scale)) << -x;
      }
    }
  }
  EXPECT_GT(doubtful, settled / 20);
  EXPECT_GT(settled, doubtful / 20);
}

}  // namespace
}  // namespace lacuna::device
