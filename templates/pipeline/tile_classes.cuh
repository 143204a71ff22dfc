// What is known of a tile once its pairs have been asked (select/pairs.cuh): two bits, which stand
// for all heads and batch entries that have the same mask.
//
//   masks        kPairsVaryByBatch, kPairsVaryByHead: answers for each, or one for all
//   rows         query tile 0: words of visible tiles, words of full ones; query tile 1; ...
#pragma once

#include "base/math.cuh"
#include "base/optional_field.cuh"
#include "base/types.cuh"

namespace lacuna {

/// Are the pairs of tiles asked before they are visited?
LACUNA_OPTIONAL_FIELD(bool, asks_pairs, kAsksPairs, false)

/// The words of visible tiles of a query tile; those of full ones lie behind them.
template <class Config, class Args>
__device__ __forceinline__ unsigned* class_words(const Args& args, int b, int h, int i) {
  int mask = Config::kPairsVaryByBatch ? b : 0;
  if constexpr (Config::kPairsVaryByHead) mask = mask * args.attend.n_h + h;
  const long long row = static_cast<long long>(mask) * args.attend.q_tiles + i;
  return args.pairs.tile_classes + row * 2 * ceil_div(args.attend.k_tiles, 32);
}

/// Of tiles 32 * word + lane: is some pair visible, are all?
struct ClassWords {
  u32 visible, full;
};
template <class Config, class Args>
__device__ __forceinline__ ClassWords read_classes(const Args& args, int b, int h, int i,
                                                   int word) {
  const unsigned* words = class_words<Config>(args, b, h, i) + word;
  return {words[0], words[ceil_div(args.attend.k_tiles, 32)]};
}

}  // namespace lacuna
