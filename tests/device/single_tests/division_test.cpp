// Integer division by prepared divisors: the quotients of the interpreter, for all divisors and
// dividends that an i32 can have.
#include "tests/device/single/prepare/division.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>

#include "compiler/expr/operators.hpp"

namespace lacuna::device {
namespace {

constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kExtremes[] = {0,       1,          -1,    2,         -2,     3,     -3,
                                      7,       64,         -64,   46341,     65535,  65536, 65537,
                                      1 << 30, -(1 << 30), kMost, kMost - 1, -kMost, kLeast};

void expect_divided(std::int32_t a, std::int32_t b) {
  ASSERT_EQ(single::floor_divide(a, b), floor_divide(a, b)) << a << " // " << b;
  ASSERT_EQ(single::modulo(a, b), floor_modulo(a, b)) << a << " % " << b;
}

TEST(Bits, AreThoseOfTheInterpreter) {
  for (const std::int32_t a : kExtremes)
    for (const std::int32_t b : kExtremes) {
      EXPECT_EQ(single::hash(a, b), hash(a, b)) << a << ", " << b;
      for (const std::int32_t n : {b, b % 40}) {
        EXPECT_EQ(single::shift_left(a, n), shift_left(a, n)) << a << " << " << n;
        EXPECT_EQ(single::shift_right(a, n), shift_right(a, n)) << a << " >> " << n;
      }
    }
  for (const float x :
       {0.0F, -0.75F, 2.99F, -2.99F, 1e9F, 0x1p31F, -0x1p31F, 1e20F, -1e20F,
        std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(single::to_i32(x), to_i32(x)) << x;
}

TEST(Division, OfExtremesByExtremes) {
  for (const std::int32_t a : kExtremes)
    for (const std::int32_t b : kExtremes) expect_divided(a, b);
}

TEST(Division, ByConstants) {
  for (const std::int32_t b : single::kConstants)
    for (const std::int32_t a : kExtremes) {
      const single::Divided divided = single::divide_by_constant(a, b);
      EXPECT_EQ(divided.quotient, floor_divide(a, b)) << a << " // " << b;
      EXPECT_EQ(divided.rest, floor_modulo(a, b)) << a << " % " << b;
    }
}

TEST(Division, IsExactAroundMultiples) {
  std::mt19937 random(3);
  const auto draw = [&] {
    return wrap(static_cast<std::uint32_t>(random())) >> (random() % 32);
  };  // of every size
  for (int n = 0; n < 1'000'000; ++n) {
    const std::int32_t b = draw();
    const std::int32_t multiple = wrap(bits_of(draw()) * bits_of(b));
    expect_divided(multiple, b);
    expect_divided(wrap(bits_of(multiple) - 1), b);
    expect_divided(draw(), b);
  }
}

TEST(Division, ReciprocalsAreTheLargestThatFit) {
  for (std::int64_t size = 1; size <= kMost; size += 1 + size / 4096) {
    const int shift = std::bit_width(static_cast<std::uint32_t>(size)) - 1;
    const std::uint64_t numerator = (std::uint64_t{1} << (32 + shift)) - 1;
    const auto divisor = static_cast<std::int32_t>(size);
    ASSERT_EQ(single::reciprocal_of(divisor), numerator / static_cast<std::uint64_t>(size)) << size;
    ASSERT_EQ(single::reciprocal_of(-divisor), single::reciprocal_of(divisor)) << size;
  }
}

}  // namespace
}  // namespace lacuna::device
