// Conversions between element types, against their definitions.
#include "tools/io/array.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lacuna::tools {
namespace {

std::uint16_t bits_of(float value, ArrayType type) {
  const Array array = from_f32(std::vector<float>{value}, {1}, type);
  std::uint16_t bits = 0;
  std::memcpy(&bits, array.bytes.data(), sizeof bits);
  return bits;
}

float value_of(std::uint16_t bits, ArrayType type) {
  Array array{type, {1}, std::string(2, '\0')};
  std::memcpy(array.bytes.data(), &bits, sizeof bits);
  return to_f32(array).front();
}

TEST(Array, EveryHalfSurvivesTheWayToF32AndBack) {
  for (const ArrayType type : {ArrayType::kF16, ArrayType::kBF16}) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = value_of(static_cast<std::uint16_t>(bits), type);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(value_of(bits_of(value, type), type)));
      } else {
        EXPECT_EQ(bits_of(value, type), bits) << name_of(type);
      }
    }
  }
}

TEST(Array, RoundsToNearestEven) {
  // Halfway between two neighbours goes to the even one; a little more goes up.
  EXPECT_EQ(bits_of(1.0f + 0x1p-11f, ArrayType::kF16), 0x3c00);
  EXPECT_EQ(bits_of(1.0f + 0x3p-11f, ArrayType::kF16), 0x3c02);
  EXPECT_EQ(bits_of(1.0f + 0x1.01p-11f, ArrayType::kF16), 0x3c01);
  EXPECT_EQ(bits_of(0x1p-25f, ArrayType::kF16), 0x0000);
  EXPECT_EQ(bits_of(0x1.8p-25f, ArrayType::kF16), 0x0001);
  EXPECT_EQ(bits_of(65519.0f, ArrayType::kF16), 0x7bff);
  EXPECT_EQ(bits_of(65520.0f, ArrayType::kF16), 0x7c00);
  EXPECT_EQ(bits_of(1.0f + 0x1p-8f, ArrayType::kBF16), 0x3f80);
  EXPECT_EQ(bits_of(1.0f + 0x3p-8f, ArrayType::kBF16), 0x3f82);
  EXPECT_EQ(bits_of(-std::numeric_limits<float>::infinity(), ArrayType::kBF16), 0xff80);
  EXPECT_EQ(bits_of(std::numeric_limits<float>::max(), ArrayType::kBF16), 0x7f80);
}

TEST(Array, CountsElementsOrSaysThatItCannot) {
  const auto count = [](std::vector<std::int64_t> shape) { return element_count(shape); };
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(count({2, 3, 4}), 24);
  EXPECT_EQ(count({5, 0}), 0);
  EXPECT_EQ(count({-1}), std::nullopt);
  EXPECT_EQ(count({std::int64_t{1} << 31, std::int64_t{1} << 31}), std::nullopt);
}

}  // namespace
}  // namespace lacuna::tools
