// Quotients of counts by one that is prepared once. A division goes through the pipe of the
// consumers' exponentials (templates/README.md, protocol 14), and costs some thirty instructions.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// `inverse` is 2^31 / divisor, rounded up.
struct CountDivisor {
  int divisor;
  u32 inverse;
};

/// Of at least 1.
__device__ __forceinline__ CountDivisor count_divisor(int number) {
  const u32 divisor = static_cast<u32>(number);
  return {number, static_cast<u32>((0x80000000u + divisor - 1) / divisor)};
}

struct Quotient {
  int quotient, remainder;
};

/// Of a number from 0 to below 2^30. The inverse is too large by less than 1, so the product is too
/// large by less than 1/2, and the quotient at most by 1.
__device__ __forceinline__ Quotient divide(int number, const CountDivisor& by) {
  const u32 twice = static_cast<u32>(number) * 2;
  Quotient result;
  result.quotient = static_cast<int>(__umulhi(twice, by.inverse));
  result.remainder = number - result.quotient * by.divisor;
  if (result.remainder < 0) {
    --result.quotient;
    result.remainder += by.divisor;
  }
  return result;
}

}  // namespace lacuna
