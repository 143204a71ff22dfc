// bf16 and f16: every value survives a round trip, and narrowing picks the nearest, ties to even.
#include "runtime/base/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lacuna {
namespace {

constexpr float kF32Infinity = std::numeric_limits<float>::infinity();

struct Format {
  const char* name;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  std::uint16_t infinity;
};
const Format kFormats[] = {{"bf16", bf16_to_f32, f32_to_bf16, 0x7f80},
                           {"f16", f16_to_f32, f32_to_f16, 0x7c00}};

TEST(Half, KnownValues) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0F);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24F);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0F);
  EXPECT_EQ(f16_to_f32(0xc000), -2.0F);
  EXPECT_EQ(bf16_to_f32(0x3f80), 1.0F);
  EXPECT_EQ(f32_to_f16(1e9F), 0x7c00);
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
}

TEST(Half, EveryValueSurvivesARoundTrip) {
  for (const Format& format : kFormats) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const float wide = format.widen(half);
      if (std::isnan(wide)) {
        EXPECT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << format.name << " " << bits;
      } else {
        EXPECT_EQ(format.narrow(wide), half) << format.name;
      }
    }
  }
}

TEST(Half, NarrowingPicksTheNearestAndEvenOnTies) {
  for (const Format& format : kFormats) {
    for (std::uint16_t low = 0; low + 1 < format.infinity; ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      const double middle = (double{format.widen(low)} + format.widen(high)) / 2;
      const auto tie = static_cast<float>(middle);
      if (double{tie} != middle) continue;  // f32 subnormals: no tie to represent
      const std::uint16_t even = low % 2 == 0 ? low : high;
      EXPECT_EQ(format.narrow(tie), even) << format.name << " " << low;
      EXPECT_EQ(format.narrow(-tie), even | 0x8000) << format.name << " " << low;
      EXPECT_EQ(format.narrow(std::nextafter(tie, 0.0F)), low) << format.name;
      EXPECT_EQ(format.narrow(std::nextafter(tie, kF32Infinity)), high) << format.name;
    }
  }
}

}  // namespace
}  // namespace lacuna
