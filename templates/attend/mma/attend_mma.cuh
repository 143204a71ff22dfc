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

#include "attend/mma/attend_visit.cuh"
#include "pipeline/work_tile_args.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args, class Logits>
class AttendBlock : AttendVisit<Config, Hooks, Args, Logits> {
  using Visit = AttendVisit<Config, Hooks, Args, Logits>;
  using typename Visit::Scores;
  using typename Visit::Shape;
  using typename Visit::Weights;
  using Visit::args_, Visit::row_, Visit::first_row_, Visit::warp_, Visit::unit_, Visit::vote_;
  using Visit::queries_, Visit::queue_, Visit::softmax_, Visit::has_weights_;

 public:
  using Visit::Visit;

  __device__ __forceinline__ void run() {
    if constexpr (!Config::kGathers) open_report<Config, Shape::kThreads>(args_.attend, row_);
    this->start_loads();
    cp_async_wait<Config::kStages - 1>();  // the queries and the first key tile are there
    this->convert_keys(0, 0);
    __syncthreads();
    if (queue_.ahead(0).exists()) {
      queries_.open();
      visit<true>(0);
      int t = 1;
      for (; queue_.ahead(0).exists(); ++t) visit<false>(t);
      cp_async_wait<0>();
      this->convert_values(t - 1);
      __syncthreads();
      if (has_weights_) this->multiply_values(t - 1);
    }
    this->write_results();
  }

 private:
  /// One iteration of the loop in the header's comment, for the t-th visited tile.
  template <bool kFirst>
  __device__ __forceinline__ void visit(int t) {
    const TileRef tile = queue_.ahead(0);
    Scores scores;
    this->multiply_queries_keys(scores, t, tile.index());
    if constexpr (Config::kHasScore) this->apply_score_hook(scores, tile.index());
    if (tile.needs_mask()) this->apply_mask(scores, tile.index());
    float tile_max[2] = {};
    if constexpr (!is_sigmoid<Config>()) row_maxima(tile_max, scores);
    GateStatistics statistics;
    if constexpr (Shape::kHasGate && !kFirst) {
      statistics =
          warp_gate_statistics(tile_max, softmax_.running_max, row_.q1 - first_row_, unit_);
      if (Shape::kVotesByTile && this->first_column() == 0) vote_.publish(t, warp_, statistics);
    }
    cp_async_wait<Shape::kPendingGroups>();
    this->convert_keys(t + 1, 1);
    if (!kFirst) this->convert_values(t - 1);
    __syncthreads();
    const bool gated = !kFirst && Shape::kHasGate && this->decide(t, tile.index(), statistics);
    this->prefetch(t, gated);
    const bool weighs = !(Config::kSkipsExp && gated);
    Weights weights;
    float decay[2];
    if (Shape::kWeighsFirst && weighs) {
      this->weigh(weights, decay, scores, tile_max);
      this->pin(weights);
    }
    if (!kFirst && (!Shape::kHasGate || has_weights_)) this->multiply_values(t - 1);
    if (!Shape::kWeighsFirst && weighs) this->weigh(weights, decay, scores, tile_max);
    if (weighs) this->template take<kFirst>(weights, decay);
    has_weights_ = !(Config::kSkipsPv && gated);
    if (!Config::kGathers && wants_report(args_.attend))
      report_visit<Config>(args_.attend, tile.index(), this->gated_by_block(gated));
    if constexpr (Shape::kHasE4m3Rows) this->last_first_key_ = tile.index() * Config::kTileK;
    queue_.advance(args_, row_);
  }
};

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
      Block(own, block_smem, work_index, row, gathered).run();
      __syncthreads();  // the next row's keys and loads overwrite this one's
    }
  } else if constexpr (has_sequences<Config>()) {
    const int rows = args.attend.n_h * args.attend.q_tiles;
    if (row_of_item<Config>(block_index()) >= rows) return;
    const WorkTile row = locate_work_tile<Config>(args.attend, block_index());
    const Args own = args_of_work_tile<Config>(args, row);
    Block(own, block_smem, block_index(), row, {}).run();
  } else {
    const WorkTile row = locate_work_tile<Config>(args.attend, block_index());
    Block(args, block_smem, block_index(), row, {}).run();
  }
}

}  // namespace lacuna
