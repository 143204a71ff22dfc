#include "tests/device/single/prepare/division.hpp"

#include <iterator>
#include <utility>

#include "tests/device/emulation/cuda.hpp"

namespace {
#include "args/expr.cuh"

template <std::size_t... kAt>
single::Divided by_constants(int a, int divisor, std::index_sequence<kAt...>) {
  single::Divided divided = {};
  ((single::kConstants[kAt] == divisor
        ? void(divided = {lacuna::floor_divide<single::kConstants[kAt]>(a),
                          lacuna::modulo<single::kConstants[kAt]>(a)})
        : void()),
   ...);
  return divided;
}

}  // namespace

int single::floor_divide(int a, int b) { return lacuna::floor_divide(a, lacuna::divisor_of(b)); }

int single::modulo(int a, int b) { return lacuna::modulo(a, lacuna::divisor_of(b)); }

single::Divided single::divide_by_constant(int a, int divisor) {
  return by_constants(a, divisor, std::make_index_sequence<std::size(single::kConstants)>());
}

int single::shift_left(int x, int n) { return lacuna::shift_left(x, n); }

int single::shift_right(int x, int n) { return lacuna::shift_right(x, n); }

int single::to_i32(float x) { return lacuna::to_i32(x); }

int single::hash(int seed, int word) { return lacuna::hash(seed, word); }

unsigned single::reciprocal_of(int divisor) { return lacuna::divisor_of(divisor).reciprocal; }
