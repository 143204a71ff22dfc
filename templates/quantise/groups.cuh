// Which tokens share one scale, and the number of a group: tile-major, then the 16 rows (32 keys),
// then the place among what the threads of an mma hold. Tokens and groups count from the first
// token of a whole tile; compiler/ir/program.hpp has the rule.
#pragma once

#include "base/ints.cuh"
#include "base/kinds.cuh"

namespace lacuna {

template <QuantGroup kGroup, bool kIsQuery, int kTile>
struct QuantGroups {
  static constexpr bool kIsThread = kGroup == QuantGroup::kThread;
  static constexpr bool kIsWarp = kGroup == QuantGroup::kWarp;
  static constexpr int kTokens = kIsThread ? (kIsQuery ? 2 : 8) : kIsWarp && kIsQuery ? 16 : kTile;
  static constexpr int kPerTile = kTile / kTokens;
  static_assert(!kIsThread || kTile % (kIsQuery ? 16 : 32) == 0,
                "groups lie within 16 rows or 32 keys");
  static_assert(kTile % kTokens == 0, "a tile is whole groups");

  __device__ __forceinline__ static int of(int token) {
    if constexpr (kIsThread && kIsQuery) return token / 16 * 8 + token % 8;
    if constexpr (kIsThread) return token / 32 * 4 + token % 8 / 2;
    return token / kTokens;
  }

  /// The tokens of a group, by member 0 .. kTokens - 1.
  __device__ __forceinline__ static int token(int group, int member) {
    if constexpr (kIsThread && kIsQuery) return group / 8 * 16 + group % 8 + 8 * member;
    if constexpr (kIsThread) return group / 4 * 32 + member / 2 * 8 + group % 4 * 2 + member % 2;
    return group * kTokens + member;
  }
};

}  // namespace lacuna
