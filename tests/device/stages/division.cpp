#include "tests/device/stages/division.hpp"

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "args/expr.cuh"
}  // namespace

int stages::floor_divide(int a, int b) { return lacuna::floor_divide(a, lacuna::divisor_of(b)); }

int stages::modulo(int a, int b) { return lacuna::modulo(a, lacuna::divisor_of(b)); }

unsigned stages::reciprocal_of(int divisor) { return lacuna::divisor_of(divisor).reciprocal; }
