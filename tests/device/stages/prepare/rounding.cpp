#include "tests/device/stages/prepare/rounding.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "quantise/divide.cuh"

int first_byte(const uint2& bytes) { return static_cast<signed char>(bytes.x); }
}  // namespace

float stages::scale_of(float largest, float range) { return lacuna::scale_of(largest, range); }

int stages::round_element(float x, float largest, float range) {
  const lacuna::Divisor divisor(lacuna::scale_of(largest, range));
  lacuna::u32 doubts = 0;
  return first_byte(lacuna::ElementRounding(divisor, largest, range).round({x}, doubts));
}

stages::Bracketed stages::bracket(float x, float scale) {
  lacuna::u32 doubts = 0;
  const lacuna::BracketRounding rounding{lacuna::Divisor(scale)};
  const int value = first_byte(rounding.round({x}, doubts));
  return {value, doubts != 0};
}
