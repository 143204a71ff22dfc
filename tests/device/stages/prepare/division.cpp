#include "tests/device/stages/prepare/division.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "args/expr.cuh"
}  // namespace

int stages::floor_divide(int a, int b) { return lacuna::floor_divide(a, lacuna::divisor_of(b)); }

int stages::modulo(int a, int b) { return lacuna::modulo(a, lacuna::divisor_of(b)); }

int stages::shift_left(int x, int n) { return lacuna::shift_left(x, n); }

int stages::shift_right(int x, int n) { return lacuna::shift_right(x, n); }

int stages::to_i32(float x) { return lacuna::to_i32(x); }

int stages::hash(int seed, int word) { return lacuna::hash(seed, word); }

unsigned stages::reciprocal_of(int divisor) { return lacuna::divisor_of(divisor).reciprocal; }
