// Integer operators of args/expr.cuh as plain functions; `//` and `%` by divisors that are
// prepared.
#pragma once

namespace single {

int floor_divide(int a, int b);
int modulo(int a, int b);

int shift_left(int x, int n);
int shift_right(int x, int n);
int to_i32(float x);
int hash(int seed, int word);

/// Of a divisor: what the quotient is multiplied with.
unsigned reciprocal_of(int divisor);

}  // namespace single
