// The order of tokens within the e4m3 rows of V transposed, [channel][token]: the one in which the
// weights, as the product Q K^T leaves them in the accumulators, are the `a` fragment of the
// product with V without a shuffle.
//
// Lane t of a quad holds the weights of keys 2t, 2t + 1 of every block of 8 keys, and as `a`
// fragment gives bytes 4t .. 4t + 3 of every 16. So the four bytes are the lane's keys of two
// blocks:
//   position 4t + e of 16 (e = 0..3) is token 8 * (e / 2) + 2t + e % 2.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline constexpr int kValueOrderTokens = 16;  ///< the order repeats

/// Which token stands at a position of a row.
__host__ __device__ constexpr int token_at_position(int position) {
  const int t = position % kValueOrderTokens / 4, e = position % 4;
  return position / kValueOrderTokens * kValueOrderTokens + e / 2 * 8 + 2 * t + e % 2;
}

}  // namespace lacuna
