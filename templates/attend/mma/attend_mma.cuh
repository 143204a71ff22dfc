// `attend`, mma family (sm_80 and newer): cp.async, ldmatrix, mma.sync.
//
// One block computes one work tile (or one item of it, pipeline/split_kv.cuh), a warp 16 of its
// query rows. Where O is too wide for the registers of one warp, several have the same rows and
// scores, and a part of the columns of V and O each (kColumnParts). Warps share nothing but the
// loaded tiles and, for a tile gate, the vote. There is one block barrier for each visited tile:
//
//   visit t:  S = Q K_t, score hook, mask, row maxima
//             ---- barrier: V_{t-1} and K_{t+1} have arrived, K_t's slot is free, votes are in ----
//             decide; issue the loads of V (of this very tile if the gate may spare it) and K
//             O += P_{t-1} V_{t-1}
//             P_t = softmax(S), O decays to the new maximum
//
// Where registers are short (kWeighsFirst) P_t is worked out before that product and set aside; the
// decay still follows it. The product with V thus runs one tile late. A value tile that is loaded
// only after the gate's decision travels behind that product, this tile's softmax and the next
// tile's scores, so the decision costs no stall; the exponentials of tile t are independent of the
// product of tile t - 1.
#pragma once

#include "attend/mma/row_results.cuh"
#include "attend/mma/tile_gate.cuh"
#include "attend/mma/tile_loads.cuh"
#include "attend/mma/tile_scores.cuh"
#include "attend/mma/tile_weights.cuh"
#include "attend/report.cuh"
#include "pipeline/work_tile_args.cuh"

namespace lacuna {

/// One iteration of the loop in the header's comment, for the t-th visited tile.
template <bool kFirst, class Block>
__device__ __forceinline__ void visit_tile(Block& at, int t) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  const TileRef tile = at.queue.ahead(0);
  typename Block::Scores scores;
  score_tile(at, scores, t, tile.index());
  if constexpr (Config::kHasScore) apply_score_hook(at, scores, tile.index());
  if (tile.needs_mask()) apply_mask(at, scores, tile.index());
  float tile_max[2] = {};
  if constexpr (has_denominator<Config>()) row_maxima(tile_max, scores);
  GateStatistics statistics;
  if constexpr (Shape::kHasGate && !kFirst) {
    statistics =
        warp_gate_statistics(tile_max, at.softmax.running_max, at.row.q1 - at.first_row, at.unit);
    if (Shape::kVotesByTile && at.first_column() == 0) at.vote.publish(t, at.warp, statistics);
  }
  cp_async_wait<Shape::kPendingGroups>();
  convert_keys(at, t + 1, 1);
  if (!kFirst) convert_values(at, t - 1);
  __syncthreads();
  const bool gated = !kFirst && Shape::kHasGate && decide_tile(at, t, tile.index(), statistics);
  prefetch(at, t, gated);
  const bool weighs = !(Config::kSkipsExp && gated);
  typename Block::Weights weights;
  float decay[2];
  if (Shape::kWeighsFirst && weighs) {
    weigh_tile(at, weights, decay, scores, tile_max);
    pin_weights<Block>(weights);
  }
  if (!kFirst && (!Shape::kHasGate || at.has_weights)) multiply_tile_values(at, t - 1);
  if (!Shape::kWeighsFirst && weighs) weigh_tile(at, weights, decay, scores, tile_max);
  if (weighs) keep_weights<kFirst>(at, weights, decay);
  at.has_weights = !(Config::kSkipsPv && gated);
  if (!Config::kGathers && wants_report(at.args.attend))
    report_visit<Config>(at.args.attend, tile.index(), gated_by_block(at, gated));
  if constexpr (Shape::kHasE4m3Rows) at.last_first_key = tile.index() * Config::kTileK;
  at.queue.advance(at.args, at.row);
}

/// The whole work tile.
template <class Block>
__device__ __forceinline__ void attend_work_tile(Block& at) {
  using Config = typename Block::Config;
  using Shape = typename Block::Shape;
  if constexpr (!Config::kGathers) open_report<Config, Shape::kThreads>(at.args.attend, at.row);
  start_loads(at);
  cp_async_wait<Config::kStages - 1>();  // the queries and the first key tile are there
  convert_keys(at, 0, 0);
  __syncthreads();
  if (at.queue.ahead(0).exists()) {
    at.queries.open();
    visit_tile<true>(at, 0);
    int t = 1;
    for (; at.queue.ahead(0).exists(); ++t) visit_tile<false>(at, t);
    cp_async_wait<0>();
    convert_values(at, t - 1);
    __syncthreads();
    if (at.has_weights) multiply_tile_values(at, t - 1);
  }
  write_results(at);
}

/// The body of a generated entry: Args is a struct whose member `attend` is an AttendArgs; Hooks
/// are the printed expressions (templates/README.md).
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void attend_mma(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  using Block = typename Config::Consumer;
  if constexpr (Config::kGathers) {  // persistent: each block has its own list of keys
    const int rows = args.attend.n_b * args.attend.n_h * args.attend.q_tiles;
    for (int work_index = block_index(); work_index < rows;
         work_index += static_cast<int>(gridDim.x)) {
      const WorkTile row = locate_work_tile<Config>(args.attend, work_index);
      const auto& own = args_of_work_tile<Config>(args, row);
      const GatheredKeys gathered = gather_keys<Config>(own, row, block_smem);
      Block block(own, block_smem, work_index, row, gathered);
      attend_work_tile(block);
      __syncthreads();  // the next row's keys and loads overwrite this one's
    }
  } else if constexpr (has_sequences<Config>()) {
    const int rows = args.attend.n_h * args.attend.q_tiles;
    if (row_of_item<Config>(block_index()) >= rows) return;
    const WorkTile row = locate_work_tile<Config>(args.attend, block_index());
    const Args own = args_of_work_tile<Config>(args, row);
    Block block(own, block_smem, block_index(), row, {});
    attend_work_tile(block);
  } else {
    const WorkTile row = locate_work_tile<Config>(args.attend, block_index());
    Block block(args, block_smem, block_index(), row, {});
    attend_work_tile(block);
  }
}

}  // namespace lacuna
