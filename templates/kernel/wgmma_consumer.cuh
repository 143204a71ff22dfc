// A consumer warpgroup of the wgmma family: 64 query rows of each row of tiles.
//
// Products are issued ahead of what waits for them: the scores of the next step, group of keys by
// group, and behind them this step's weights with V. The softmax of a group thus runs under the
// products of the following ones, under that with V, and under all those of the other warpgroups:
//
//   S_g = Q K_g, softmax of each group g
//   for each further step:       (wait for the turn, if warpgroups take turns)
//                                S'_g = Q K_g for all g, O += P V     issued
//                                (pass the turn on)
//                                S'_g is complete: its softmax, for each g
//                                O is complete: O decays, P = S'
//   O += P V
#pragma once

#include "arch/wgmma.cuh"
#include "base/kinds.cuh"
#include "base/pin.cuh"
#include "kernel/epilogue.cuh"
#include "kernel/report.cuh"
#include "kernel/row_schedule.cuh"
#include "kernel/wgmma_epilogue.cuh"
#include "kernel/wgmma_gate.cuh"
#include "kernel/wgmma_scores.cuh"
#include "kernel/wgmma_softmax.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class WgmmaConsumer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;
  using Message = typename Shape::Message;
  using Element = typename Config::Element;
  using Scores = float[Shape::kGroups][Shape::kGroupBlocks][4];
  using Ring = RingPosition<Config::kStages>;
  using Weights = u32[Config::kStepKeys / 16][4];

  /// What everything older than a step is to be multiplied by.
  struct Decay {
    bool applies = false;
    float factor[2] = {1.0f, 1.0f};
  };

 public:
  /// `warpgroup`: 0 .. kWarpgroups - 1.
  __device__ __forceinline__ WgmmaConsumer(const Args& args, const Smem& smem, int warpgroup)
      : args_(args), smem_(smem), warpgroup_(warpgroup), gate_(smem.control()->votes, warpgroup) {
    to_log2_ = unit() * kLog2E;
  }

  __device__ __forceinline__ void run() {
    if (Shape::kTakesTurns && warpgroup_ == Config::kWarpgroups - 1) turn_barrier(0).arrive();
    for (Message first = receive(); !first.has(Message::kEnd); first = receive()) {
      row_ = located_anew();
      begin_row();
      if (first.tiles[0].exists()) {
        attend_row(first);
        write_results();
      } else {
        pass_over();
      }
      if (Config::kWritesLse && args_.attend.lse.data != nullptr) write_logarithms();
      if (wants_report(args_.attend) && warpgroup_ == 0)
        close_report<Config, Hooks>(args_, located_anew());
      rows_.advance();
    }
    finish_store();
  }

 private:
  __device__ __forceinline__ void attend_row(Message step) {
    await(smem_.control()->q_full, queries_);
    if constexpr (Shape::kKeepsQueries) load_queries();
    Scores scores;
    Decay decay;
    wgmma_begin();
    multiply_queries_keys(scores, uniform_over_warp(smem_.keys(keys_.slot())));
    weigh<true>(scores, decay, step);
    pack_weights(scores);
    finish_store();
    while (!step.has(Message::kLastOfRow)) {
      step = receive();
      const auto values = keys_.before();
      const u32 k = uniform_over_warp(smem_.keys(keys_.slot()));
      const u32 v = uniform_over_warp(smem_.values(values.slot()));
      if constexpr (Shape::kTakesTurns) turn_barrier(warpgroup_).sync();
      wgmma_begin();
      multiply_queries_keys(scores, k);
      await(smem_.control()->v_full, values);
      wgmma_begin();
      multiply_values(v);
      wgmma_commit();
      if constexpr (Shape::kTakesTurns)
        turn_barrier((warpgroup_ + 1) % Config::kWarpgroups).arrive();
      weigh<false>(scores, decay, step);
      wgmma_wait<0>();
      wgmma_arrived(output_);
      release_values(values);
      if (decay.applies) follow_reference(output_, decay.factor);
      pack_weights(scores);
    }
    const auto values = keys_.before();
    await(smem_.control()->v_full, values);
    wgmma_begin();
    multiply_values(uniform_over_warp(smem_.values(values.slot())));
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_arrived(output_);
    release_values(values);
  }

  __device__ __forceinline__ void begin_row() {
    softmax_ = {};
    gate_.begin_row();
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output_[n][i] = 0.0f;
    }
    if (wants_report(args_.attend) && warpgroup_ == 0) {
      open_report<kWarpgroupThreads>(args_.attend, row_);
      warpgroup_barrier(0).sync();
    }
  }

  /// A row of tiles that sees nothing: O is 0.
  __device__ __forceinline__ void pass_over() {
    release_keys();
    await(smem_.control()->v_full, keys_.before());
    release_values(keys_.before());
    const TensorArg& o = args_.attend.o;
    Element* head = static_cast<Element*>(o.data) + row_.b * o.stride_b + row_.h * o.stride_h;
    constexpr int kChunks = Config::kHeadDim / 8;
    for (int n = thread_index(); n < Config::kTileQ * kChunks; n += Shape::kConsumerThreads) {
      const int q = row_.q0 + n / kChunks;
      if (q > row_.q1) break;
      *reinterpret_cast<uint4*>(head + q * o.stride_n + n % kChunks * 8) = {0, 0, 0, 0};
    }
  }

  __device__ __forceinline__ Message receive() {
    await(smem_.control()->k_full, keys_);
    return smem_.control()->messages[keys_.slot()];
  }

  template <int kSlots>
  __device__ __forceinline__ void await(const unsigned long long (&full)[kSlots],
                                        const RingPosition<kSlots>& at) const {
    Smem::barrier(full[at.slot()]).wait(at.phase());
  }

  /// Each warp for itself, after its reads of the slot and of the step's message.
  __device__ __forceinline__ void release_keys() {
    if (lane_index() == 0) Smem::barrier(smem_.control()->k_empty[keys_.slot()]).arrive();
    keys_.advance();
  }
  __device__ __forceinline__ void release_values(const Ring& at) const {
    if (lane_index() == 0) Smem::barrier(smem_.control()->v_empty[at.slot()]).arrive();
  }

  __device__ __forceinline__ void load_queries() {
    const u32 q = smem_.queries(queries_.slot(), warpgroup_);
#pragma unroll
    for (int n = 0; n < Config::kHeadDim / 16; ++n)
      read_query_fragment<typename Shape::QueryTile>(query_[n], q, warp(), n);
  }

  /// Issues S = Q K of the step whose keys are at `keys`, a commit for each group.
  __device__ __forceinline__ void multiply_queries_keys(Scores& scores, u32 keys) const {
    using Step = typename Shape::StepTile;
    using Query = typename Shape::QueryTile;
    const auto q = Query::along_rows(uniform_over_warp(smem_.queries(queries_.slot(), warpgroup_)));
    const auto k = Step::along_rows(keys);
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
#pragma unroll
      for (int n = 0; n < Config::kHeadDim / 16; ++n) {
        const auto key = k.at(Step::along_step(n) + g * Shape::kGroupKeys * kPanelRowBytes);
        if constexpr (Shape::kKeepsQueries) {
          wgmma_from_registers<Element, Contiguous::kDepth>(scores[g], query_[n], key, n != 0);
        } else {
          wgmma_from_smem<Element>(scores[g], q.at(Query::along_step(n)), key, n != 0);
        }
      }
      wgmma_commit();
    }
  }

  /// Issues O += P V for the values at `values`, of the groups whose weights count.
  __device__ __forceinline__ void multiply_values(u32 values) {
    using Step = typename Shape::StepTile;
    const auto v = Step::across_rows(values);
    constexpr int kGroupSteps = Shape::kGroupKeys / 16;
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      if constexpr (Shape::kHasGate) {
        if (uniform_over_warp(has_weights_[g]) == 0) continue;
        wgmma_begin();
      }
#pragma unroll
      for (int n = g * kGroupSteps; n < (g + 1) * kGroupSteps; ++n) {
        wgmma_from_registers<Element, Contiguous::kColumns>(output_, weights_[n],
                                                            v.at(Step::across_step(n)), true);
      }
    }
  }

  /// Scores -> unpacked weights, group by group as they arrive. Gates decide from maxima; so does
  /// the first step of a row, which sets the reference.
  template <bool kFirst>
  __device__ __forceinline__ void weigh(Scores& scores, Decay& decay, const Message& step) {
    decay = {};
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      wgmma_wait(Shape::kGroups - g - (kFirst ? 1 : 0));
      wgmma_arrived(scores[g]);
      if (g == Shape::kGroups - 1) release_keys();
      complete(scores[g], g, step);
      if constexpr (kFirst || Shape::kHasGate) {
        weigh_carefully<kFirst>(scores, g, decay, step);
      } else {
        weigh_boldly(scores, decay, step);
      }
    }
    if constexpr (kFirst) has_fresh_row_ = softmax_.any_fresh();
    if constexpr (!Shape::kHasGate) {
      if (__builtin_expect(step.has(Message::kUnusual), false)) report_step(step);
    }
  }

  /// Without maxima. Rows that prove to have outgrown their reference have their scores worked out
  /// again.
  __device__ __forceinline__ void weigh_boldly(Scores& scores, Decay& decay, const Message& step) {
    bool careful = has_fresh_row_;
    if (__builtin_expect(!careful, true)) {
      float sum[2] = {0.0f, 0.0f};
      exponentiate(sum, scores[0], softmax_.reference, to_log2_);
      careful = __any_sync(kAllLanes, !(sum[0] <= kLargestSum && sum[1] <= kLargestSum));
      if (__builtin_expect(careful, false)) {
        multiply_again<Config>(args_.attend, located_anew(), scores[0], step,
                               smem_.queries(queries_.slot(), warpgroup_), warp());
        // Read anew, so that they need not live through that.
        if constexpr (Shape::kKeepsQueries) load_queries();
        complete(scores[0], 0, step);
      } else {
        softmax_.sum[0] += sum[0];
        softmax_.sum[1] += sum[1];
      }
    }
    if (__builtin_expect(careful, false)) {
      weigh_carefully<false>(scores, 0, decay, step);
      has_fresh_row_ = softmax_.any_fresh();
    }
  }

  __device__ __forceinline__ void complete(float (&scores)[Shape::kGroupBlocks][4], int g,
                                           const Message& step) const {
    complete_scores<Config, Hooks>(args_, row_, first_row(row_) + lane_index() / 4, scores, g,
                                   step);
  }

  /// Group g under the gate and a reference that its maxima are held against.
  template <bool kFirst>
  __device__ __forceinline__ void weigh_carefully(Scores& scores, int g, Decay& decay,
                                                  const Message& step) {
    float group_max[2];
    row_maxima_wide(group_max, scores[g]);
    if constexpr (Shape::kHasGate) {
      if (!counts<kFirst>(g, step.tiles[g], group_max)) return;
    }
    if (outgrows(softmax_, group_max, to_log2_)) {
      float raised[2];
      raise_reference(softmax_, raised, group_max, to_log2_);
#pragma unroll
      for (int older = 0; older < g; ++older) follow_reference(scores[older], raised);
      decay.factor[0] *= raised[0];
      decay.factor[1] *= raised[1];
      decay.applies = true;
    }
    const float offset[2] = {softmax_.offset(0), softmax_.offset(1)};
    exponentiate(softmax_.sum, scores[g], offset, to_log2_);
  }

  /// Asks the gate about group g, which is a tile. False: it is left out of the softmax.
  template <bool kFirst>
  __device__ __forceinline__ bool counts(int g, TileRef tile, const float (&group_max)[2]) {
    const bool decides = tile.exists() && !(kFirst && g == 0);
    const bool gated = decides && decide(tile, group_max);
    has_weights_[g] = tile.exists() && !(Config::kSkipsPv && gated);
    if (__builtin_expect(wants_report(args_.attend) && tile.exists(), false)) report(tile, gated);
    if (Config::kSkipsExp && gated) return false;
    gate_.raise(group_max);
    return true;
  }

  __device__ __forceinline__ bool decide(TileRef tile, const float (&tile_max)[2]) {
    const GateStatistics statistics =
        gate_.vote(warp(), tile_max, row_.q1 - first_row(row_), unit());
    const int k0 = tile.index() * Config::kTileK;
    const int k1 = smaller(k0 + Config::kTileK - 1, args_.attend.n_k - 1);
    const bool skip = Hooks::gate_skip(args_, statistics.tile_max, statistics.gap, row_.i,
                                       tile.index(), row_.q0, row_.q1, k0, k1, row_.h, row_.b);
    return __any_sync(kAllLanes, skip);
  }

  __device__ __forceinline__ void pack_weights(const Scores& scores) {
    constexpr int kGroupSteps = Shape::kGroupKeys / 16;
#pragma unroll
    for (int n = 0; n < Config::kStepKeys / 16; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&block)[4] = scores[n / kGroupSteps][n % kGroupSteps * 2 + i / 2];
        weights_[n][i] = pack<Element>(block[i % 2 * 2], block[i % 2 * 2 + 1]);
        // Here, and not behind the branch of a gate, where the product is already being issued.
        if constexpr (Shape::kHasGate) pin(weights_[n][i]);
      }
    }
  }

  /// O through the queries' place, which is then the producer's again.
  __device__ __forceinline__ void write_results() {
    using Tile = typename Shape::QueryTile;
    const TileRow row = located_anew();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    const u32 staging = smem_.queries(queries_.slot(), warpgroup_);
    stage_output<Element, Tile>(staging, warp(), output_, sum);
    store_output<Tile>(args_.maps.o, staging, warp(), first_row(row), row);
    queries_.advance();
    has_stored_ = true;
    if constexpr (Config::kQueryBuffers == 1) finish_store();
  }

  /// The queries' place is the producer's again once the copy engine has read O from it. With a
  /// second place that is not asked at the end of the row, but when the next one is under way.
  __device__ __forceinline__ void finish_store() {
    if (!has_stored_) return;
    if (elect_one()) {  // the same thread that stored
      tma_store_wait_read();
      Smem::barrier(smem_.control()->q_empty[queries_.before().slot()]).arrive();
    }
    has_stored_ = false;
  }

  __device__ __forceinline__ void write_logarithms() const {
    const TileRow row = located_anew();
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    write_lse(args_.attend.lse, row.b, row.h, first_row(row), args_.attend.n_q, softmax_, sum,
              to_log2_, 0.0f);
  }

  __device__ __forceinline__ void report_step(const Message& step) const {
    if (!wants_report(args_.attend)) return;
#pragma unroll
    for (int t = 0; t < Shape::kStepTiles; ++t) {
      if (step.tiles[t].exists()) report(step.tiles[t], false);
    }
  }

  /// Of a visited tile: gated by all warpgroups? One without a query row agrees.
  __device__ __forceinline__ void report(TileRef tile, bool gated) const {
    if constexpr (Config::kGateScope == GateScope::kWarpgroup) {
      const bool has_rows = row_.q0 + warpgroup_ * kWarpgroupRows <= row_.q1;
      gated = consumer_barrier<Config>().sync_all(gated || !has_rows);
    }
    if (thread_index() == 0) write_visit(args_.attend, located_anew(), tile.index(), gated);
  }

  /// For what is seldom done: the loop over steps keeps no registers for it.
  __device__ __forceinline__ TileRow located_anew() const {
    u32 slot = rows_.slot();
    pin(slot);
    return smem_.control()->rows[slot];
  }

  /// First query token of this warp.
  __device__ __forceinline__ int first_row(const TileRow& row) const {
    return row.q0 + thread_index() / 32 * kWarpRows;
  }

  /// Scores -> natural units.
  __device__ __forceinline__ float unit() const {
    return Config::kHasScore ? 1.0f : args_.attend.scale;
  }

  /// Of the warpgroup; worked out where it is wanted.
  __device__ __forceinline__ static int warp() { return thread_index() / 32 % 4; }

  const Args& args_;
  const Smem smem_;
  const int warpgroup_;
  float to_log2_;                        ///< scores -> log2 domain
  RingPosition<Shape::kRowSlots> rows_;  ///< of row_
  bool has_stored_ = false;              ///< O is on its way from the place of the queries before
  TileRow row_;
  RingPosition<Config::kQueryBuffers> queries_;
  Ring keys_;  ///< of the step under way; its values' position is the same, a step later
  WgmmaGate<Config> gate_;
  bool has_weights_[Shape::kGroups];  ///< of the step whose product with V is due
  bool has_fresh_row_;                ///< of this warp: it has no reference yet
  ReferenceRows softmax_;
  u32 query_[Config::kHeadDim / 16][4];  ///< fragments, if kept
  Weights weights_;
  float output_[Shape::kColumnBlocks][4];
};

}  // namespace lacuna
