// Integer operators of args/expr.cuh as plain functions; `//` and `%` by divisors that are
// prepared.
#pragma once

namespace single {

int floor_divide(int a, int b);
int modulo(int a, int b);

/// ... by one of these, which the code knows.
struct Divided {
  int quotient, rest;
};
inline constexpr int kConstants[] = {1, 2, 3, 7, 64, 100, 65537, 1 << 30, 0x7fffffff};
Divided divide_by_constant(int a, int divisor);

int shift_left(int x, int n);
int shift_right(int x, int n);
int to_i32(float x);
int hash(int seed, int word);

/// Of a divisor: what the quotient is multiplied with.
unsigned reciprocal_of(int divisor);

}  // namespace single
