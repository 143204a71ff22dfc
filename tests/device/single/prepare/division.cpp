#include "tests/device/single/prepare/division.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "args/expr.cuh"
}  // namespace

int single::floor_divide(int a, int b) { return lacuna::floor_divide(a, lacuna::divisor_of(b)); }

int single::modulo(int a, int b) { return lacuna::modulo(a, lacuna::divisor_of(b)); }

int single::shift_left(int x, int n) { return lacuna::shift_left(x, n); }

int single::shift_right(int x, int n) { return lacuna::shift_right(x, n); }

int single::to_i32(float x) { return lacuna::to_i32(x); }

int single::hash(int seed, int word) { return lacuna::hash(seed, word); }

unsigned single::reciprocal_of(int divisor) { return lacuna::divisor_of(divisor).reciprocal; }
