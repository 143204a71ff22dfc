#include "tests/device/stages/prepare/division.hpp"

#include <iterator>
#include <utility>

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "args/expr.cuh"

template <std::size_t... kAt>
stages::Divided by_constants(int a, int divisor, std::index_sequence<kAt...>) {
  stages::Divided divided = {};
  ((stages::kConstants[kAt] == divisor
        ? void(divided = {lacuna::floor_divide<stages::kConstants[kAt]>(a),
                          lacuna::modulo<stages::kConstants[kAt]>(a)})
        : void()),
   ...);
  return divided;
}

}  // namespace

int stages::floor_divide(int a, int b) { return lacuna::floor_divide(a, lacuna::divisor_of(b)); }

int stages::modulo(int a, int b) { return lacuna::modulo(a, lacuna::divisor_of(b)); }

stages::Divided stages::divide_by_constant(int a, int divisor) {
  return by_constants(a, divisor, std::make_index_sequence<std::size(stages::kConstants)>());
}

int stages::shift_left(int x, int n) { return lacuna::shift_left(x, n); }

int stages::shift_right(int x, int n) { return lacuna::shift_right(x, n); }

int stages::to_i32(float x) { return lacuna::to_i32(x); }

int stages::hash(int seed, int word) { return lacuna::hash(seed, word); }

unsigned stages::reciprocal_of(int divisor) { return lacuna::divisor_of(divisor).reciprocal; }
