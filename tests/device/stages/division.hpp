// `//` and `%` of args/expr.cuh as plain functions, by divisors that are prepared.
#pragma once

namespace stages {

int floor_divide(int a, int b);
int modulo(int a, int b);

/// Of a divisor: what the quotient is multiplied with.
unsigned reciprocal_of(int divisor);

}  // namespace stages
