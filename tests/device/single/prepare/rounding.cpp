#include "tests/device/single/prepare/rounding.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "quantise/divide.cuh"

int first_byte(const uint2& bytes) { return static_cast<signed char>(bytes.x); }
}  // namespace

float single::scale_of(float largest, float range) { return lacuna::scale_of(largest, range); }

int single::round_element(float x, float largest, float range) {
  const lacuna::Divisor divisor(lacuna::scale_of(largest, range));
  lacuna::u32 doubts = 0;
  return first_byte(lacuna::ElementRounding(divisor, largest, range).round({x}, doubts));
}

single::Bracketed single::bracket(float x, float scale) {
  lacuna::u32 doubts = 0;
  const lacuna::BracketRounding rounding{lacuna::Divisor(scale)};
  const int value = first_byte(rounding.round({x}, doubts));
  return {value, doubts != 0};
}
