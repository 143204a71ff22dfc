// The end of an estimate that has p of a whole row, by a block, whatever `keep` reads of it.
#pragma once

#include "predict/select_first.cuh"
#include "predict/select_row.cuh"

namespace lacuna {

/// p and score, by tile, were written before the block met, and may be written again afterwards; p
/// is lost. `order`: room for two numbers of each tile, where `keep` reads what is known in order.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void decide_row(const Args& args, const KeepRow& row, float* p,
                                           const float* score, int* order,
                                           OrderScratch<Config::kThreads / 32>& order_scratch,
                                           SelectScratch& scratch) {
  if constexpr (Config::kKeepsFirst) {
    select_first<Config, Hooks>(args, row, p, scratch.reduce);
  } else {
    RowValues values;
    values.score = score;
    values.p = p;
    if constexpr (Config::kOrdersTiles) {
      const int tiles = args.predict.keep_k_tiles;
      order_tiles<Config::kThreads>(p, tiles, order, order + tiles, order_scratch);
      values.order = order;
      values.ordered = tiles;
    }
    select_row<Config, Hooks>(args, row, values, scratch);
  }
}

}  // namespace lacuna
