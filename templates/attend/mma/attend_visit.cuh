// What a block of the mma family has, and the parts of its visit to a tile (attend_mma.cuh): loads,
// products, formula and mask, the gate, weights, and the results of the work tile.
#pragma once

#include "attend/epilogue.cuh"
#include "attend/key_ranges.cuh"
#include "attend/mma/operands.cuh"
#include "attend/mma/quantised_logits.cuh"
#include "attend/mma/shape.cuh"
#include "attend/partial_results.cuh"
#include "attend/report.cuh"
#include "attend/score_formula.cuh"
#include "attend/softmax.cuh"
#include "base/mask_pair.cuh"
#include "pipeline/gathered_keys.cuh"
#include "pipeline/tile_walk.cuh"
#include "tile/byte_product.cuh"
#include "tile/warp_product.cuh"

namespace lacuna {

/// `Logits`: PlainLogits, or QuantisedLogits of int8 products.
template <class Config, class Hooks, class Args, class Logits>
class AttendVisit {
 protected:
  using Shape = AttendShape<Config>;
  using Element = typename Config::Element;
  using Operands = typename Config::Producer;
  using KeyTile = typename Shape::KeyTile;
  using ValueTile = typename Shape::ValueTile;
  using Scores = float[Shape::kKeyBlocks][4];
  using Weights = u32[Shape::kKeySteps][4];

 public:
  /// `work_index` and `row`: locate_work_tile; `gathered`: the row's keys, where they are gathered.
  __device__ __forceinline__ AttendVisit(const Args& args, unsigned char* smem, int work_index,
                                         const WorkTile& row, const GatheredKeys& gathered)
      : args_(args),
        work_index_(work_index),
        row_(row),
        gathered_(gathered),
        warp_(row_warp()),
        first_row_(row_.q0 + warp_ * kWarpRows),
        smem_(smem),
        keys_(Operands::keys(args, row_, gathered)),
        values_(Operands::values(args, row_, gathered)),
        queue_(args, row_, gathered, share_of_item<Config>(work_index)),
        vote_(smem + Shape::kVoteOffset),
        logits_(args, row_, warp_),
        queries_(shared_address(smem) + warp_ * kWarpRows * Shape::QueryTile::kRowBytes) {
    unit_ = Config::kHasScore ? 1.0f : args.attend.scale;
    to_log2_ = unit_ * kLog2E;
#pragma unroll
    for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output_[n][i] = 0.0f;
    }
  }

 protected:
  /// Scores of key tile j, the t-th visited, in units of products of queries and keys.
  __device__ __forceinline__ void multiply_queries_keys(Scores& scores, int t, int j) {
    if constexpr (Shape::kHasInt8Keys) {
      const auto terms = logits_.read(j);
      int sums[Shape::kKeyBlocks][4];
      multiply_queries_keys_s8<KeyTile>(sums, queries_, key_slot(t));
      logits_.convert(scores, sums, terms);
    } else {
      lacuna::multiply_queries_keys<Element, KeyTile>(scores, queries_, key_slot(t));
    }
  }

  /// Scores -> packed weights under the raised maxima, and the decay of everything older.
  __device__ __forceinline__ void weigh(Weights& weights, float (&decay)[2], const Scores& scores,
                                        const float (&tile_max)[2]) {
    if constexpr (is_sigmoid<Config>()) {
#pragma unroll
      for (int step = 0; step < Shape::kKeySteps; ++step)
        weigh_step_sigmoid<Element>(weights[step], scores, step, to_log2_);
      decay[0] = decay[1] = 1.0f;
      return;
    }
    raise_maxima(softmax_, decay, tile_max, to_log2_);
    const float offset[2] = {softmax_.offset(0, to_log2_) - kRangeLog2,
                             softmax_.offset(1, to_log2_) - kRangeLog2};
#pragma unroll
    for (int step = 0; step < Shape::kKeySteps; ++step) {
      if constexpr (Shape::kHasE4m3Values) {
        weigh_step_e4m3(softmax_, weights[step], scores, step, offset, to_log2_);
      } else {
        weigh_step<Element>(softmax_, weights[step], scores, step, offset, to_log2_);
      }
    }
  }

  /// Weights are packed before what follows, not where they are used.
  __device__ __forceinline__ static void pin(Weights& weights) {
#pragma unroll
    for (int step = 0; step < Shape::kKeySteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) lacuna::pin(weights[step][i]);
    }
  }

  /// The product of the t-th visited tile.
  __device__ __forceinline__ void multiply_values(int t) {
    if constexpr (Shape::kHasE4m3Values) {
      multiply_weights_values_e4m3<ValueTile>(output_, weights_, value_slot(t));
    } else {
      multiply_weights_values<Element, ValueTile>(output_, weights_, value_slot(t), first_column());
    }
  }

  /// The output, complete up to the tile before, follows the maxima; the weights wait for their
  /// values.
  template <bool kFirst>
  __device__ __forceinline__ void take(const Weights& weights, const float (&decay)[2]) {
    if constexpr (!kFirst && !is_sigmoid<Config>()) {
#pragma unroll
      for (int n = 0; n < Shape::kColumnBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) output_[n][i] *= decay[i / 2];
      }
    }
#pragma unroll
    for (int step = 0; step < Shape::kKeySteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) weights_[step][i] = weights[step][i];
    }
  }

  __device__ __forceinline__ bool decide(int t, int j, GateStatistics statistics) const {
    if constexpr (Shape::kVotesByTile) statistics = vote_.collect(t);
    const int k0 = j * Config::kTileK;
    const int k1 = smaller(k0 + Config::kTileK - 1, args_.attend.n_k - 1);
    const auto constants = Hooks::gate_row(args_, row_.i, row_.q0, row_.q1, row_.h, row_.b);
    const bool skip = Hooks::gate_skip(args_, constants, statistics.tile_max, statistics.gap,
                                       row_.i, j, row_.q0, row_.q1, k0, k1, row_.h, row_.b);
    return __any_sync(kAllLanes, skip);
  }

  /// Did every warp gate the tile? Warps without a query row agree. Asked only where it is
  /// reported.
  __device__ __forceinline__ bool gated_by_block(bool gated) const {
    if constexpr (Config::kGateScope != GateScope::kWarp) return gated;
    const WorkTile row = locate_work_tile<Config>(args_.attend, block_index());
    const bool has_rows = row.q0 + row_warp() * kWarpRows <= row.q1;
    return __syncthreads_and(gated || !has_rows) != 0;
  }

  /// Natural units behind the hook.
  __device__ __forceinline__ void apply_score_hook(Scores& scores, int j) const {
    if constexpr (Config::kGathers) {
      for_each_score(j, [&](int n, int i, int q, int k) {
        scores[n][i] = Hooks::score(args_, scores[n][i] * args_.attend.scale, q, k, row_.h, row_.b);
      });
    } else {
      const int k = j * Config::kTileK + lane_index() % 4 * 2;
      apply_score_formula<Hooks, Shape::kKeyBlocks>(
          args_, scores, LaneRows{first_row_ + lane_index() / 4, row_.h}, k, row_.b);
    }
  }

  __device__ __forceinline__ void apply_mask(Scores& scores, int j) const {
    if constexpr (!Config::kGathers && Hooks::MaskRow::kRanges > 0) {
      const int k = j * Config::kTileK + lane_index() % 4 * 2;
      apply_key_ranges<Hooks, Shape::kKeyBlocks>(
          args_, scores, LaneRows{first_row_ + lane_index() / 4, row_.h}, k, row_.b);
    } else {
      const auto divisors = prepare_mask<Hooks>(args_, row_.h, row_.b);
      for_each_score(j, [&](int n, int i, int q, int k) {
        bool visible = k < args_.attend.n_k;
        if constexpr (Config::kHasMask) {
          visible = visible && sees<Hooks>(args_, divisors, q, k, row_.h, row_.b);
        }
        if (!visible) scores[n][i] = -kInfinity;
      });
    }
  }

  /// body(block, accumulator, query token, key token) for each score of this lane. The empty slots
  /// after the last gathered key are of key n_k.
  template <class Body>
  __device__ __forceinline__ void for_each_score(int j, Body body) const {
    const int q = first_row_ + lane_index() / 4;
    const int slot = j * Config::kTileK + lane_index() % 4 * 2;
#pragma unroll
    for (int n = 0; n < Shape::kKeyBlocks; ++n) {
      int k[2] = {slot + n * 8, slot + n * 8 + 1};
      if constexpr (Config::kGathers) {
        const int2 keys = *reinterpret_cast<const int2*>(gathered_.keys + k[0]);
        k[0] = k[0] < gathered_.count ? keys.x : args_.attend.n_k;
        k[1] = k[1] < gathered_.count ? keys.y : args_.attend.n_k;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) body(n, i, q + i / 2 * 8, k[i % 2]);
    }
  }

  /// Queries and the pipeline's fill: as many groups as the loop's waits expect.
  __device__ __forceinline__ void start_loads() const {
    Operands::queries(args_, row_).load(shared_address(smem_), row_.q0);
    load_keys(0);
    cp_async_commit();
#pragma unroll
    for (int n = 1; n < Config::kStages; ++n) {
      if (!Config::kSkipsVLoad && n >= 2) load_values(n - 2, n - 2);
      load_keys(n);
      cp_async_commit();
    }
  }

  /// The loads that follow the barrier of visit t.
  __device__ __forceinline__ void prefetch(int t, bool gated) const {
    if constexpr (Config::kSkipsVLoad) {
      if (!gated) load_values(t, 0);
      cp_async_commit();
    } else {
      load_values(t + Shape::kValueAhead, Shape::kValueAhead);
    }
    const TileRef tile = queue_.ahead(Config::kStages);
    // Of as many places as stages, that of the t-th is free.
    const int place = Shape::kVOfK ? t + Config::kStages : t;
    if (tile.exists()) keys_.load(landed_keys(place), tile.index() * Config::kTileK);
    cp_async_commit();
  }

  /// Of the t-th visited tile, which is `ahead` steps ahead: 16-bit keys of codes that have landed.
  /// The tile in whose place they come was read before the barrier that lies behind.
  __device__ __forceinline__ void convert_keys(int t, int ahead) const {
    if constexpr (Shape::kHasE4m3Rows) {
      const TileRef tile = queue_.ahead(ahead);
      if (!tile.exists()) return;
      keys_.convert(at(landed_keys(t)), at(key_slot(t)), tile.index() * Config::kTileK);
    }
  }
  /// The same for the values of the tile visited last, which is the t-th. Of a tile that the gate
  /// has spared nothing has landed, and what is made of that is not read.
  __device__ __forceinline__ void convert_values(int t) const {
    if constexpr (Shape::kHasE4m3Rows)
      values_.convert(at(landed_values(t)), at(value_slot(t)), last_first_key_);
  }

  __device__ __forceinline__ void load_keys(int n) const {
    const TileRef tile = queue_.ahead(n);
    if (tile.exists()) keys_.load(landed_keys(n), tile.index() * Config::kTileK);
  }

  /// The tile `ahead` steps ahead, which is the t-th visited.
  __device__ __forceinline__ void load_values(int t, int ahead) const {
    if constexpr (Shape::kVOfK) return;
    const TileRef tile = queue_.ahead(ahead);
    if (!tile.exists()) return;
    if constexpr (Shape::kHasE4m3Values) {
      values_.load_columns(value_slot(t), tile.index() * Config::kTileK);
    } else {
      values_.load(landed_values(t), tile.index() * Config::kTileK);
    }
  }

  /// Works out again where the block is: kept, it would take registers from the loop.
  __device__ __forceinline__ void write_results() {
    const WorkTile row =
        locate_work_tile<Config>(args_.attend, Config::kGathers ? work_index_ : block_index());
    const int first_row = row.q0 + row_warp() * kWarpRows;
    const float sum[2] = {quad_sum(softmax_.sum[0]), quad_sum(softmax_.sum[1])};
    if constexpr (Shape::kHasE4m3Values) {
      scale_channels(output_, Operands::value_scales(args_, row));
    }
    const int share = share_of_item<Config>(block_index());
    if constexpr (SplitKv<Config>::kIsSplit) {
      write_partial_results<Shape::kHeadDimV>(args_, row, share, first_row, first_column(), output_,
                                              softmax_, sum, to_log2_);
    } else {
      using Staging = typename Shape::OutputTile;
      float denominators[2] = {sum[0], sum[1]};
      if constexpr (is_sigmoid<Config>()) denominators[0] = denominators[1] = 1.0f;
      const LaneRows lane{first_row + lane_index() / 4, row.h};
      take_sinks<Config, Hooks>(denominators, args_, row.b, lane, softmax_, to_log2_, kRangeLog2);
      write_output<Element, Staging>(
          args_.attend.o, row.b, row.h, first_row, args_.attend.n_q, first_column(),
          smem_ + warp_index() * kWarpRows * Staging::kRowBytes, output_, denominators);
      if (Config::kWritesLse && args_.attend.lse.data != nullptr && first_column() == 0) {
        write_lse<Config, Hooks>(args_, args_.attend.lse, row.b, lane, softmax_, sum, to_log2_,
                                 kRangeLog2);
      }
    }
    if (share == 0) close_report<Config, Hooks>(args_, row);
  }

  /// Which 16 query rows of the work tile are this warp's; those of one part of the columns come
  /// before those of the next.
  __device__ __forceinline__ static int row_warp() {
    if constexpr (Shape::kColumnParts == 1) return warp_index();
    return warp_index() % Shape::kRowWarps;
  }
  /// Of V and O that are this warp's.
  __device__ __forceinline__ static int first_column() {
    if constexpr (Shape::kColumnParts == 1) return 0;
    return warp_index() / Shape::kRowWarps * Shape::kWarpColumns;
  }

  // Places of the t-th visited tile: where products read it, and where its copies land, which is
  // the same but for e4m3 rows.
  __device__ __forceinline__ u32 key_slot(int t) const {
    return shared_address(smem_) + Shape::kKeysOffset + t % Shape::kKeyTiles * KeyTile::kBytes;
  }
  __device__ __forceinline__ u32 value_slot(int t) const {
    if constexpr (Shape::kVOfK) return key_slot(t);
    return shared_address(smem_) + Shape::kValuesOffset +
           t % Shape::kValueTiles * ValueTile::kBytes;
  }
  __device__ __forceinline__ u32 landed_keys(int t) const {
    return shared_address(smem_) + Shape::kLandedKeysOffset +
           t % Shape::kLandedKeyTiles * Shape::kLandedKeyBytes;
  }
  __device__ __forceinline__ u32 landed_values(int t) const {
    return shared_address(smem_) + Shape::kLandedValuesOffset +
           t % Shape::kValueSlots * Shape::kLandedValueBytes;
  }
  /// As memory of this thread's.
  __device__ __forceinline__ unsigned char* at(u32 address) const {
    return smem_ + (address - shared_address(smem_));
  }

  /// Weights are times 2 to this.
  static constexpr float kRangeLog2 = Shape::kHasE4m3Values ? kLog2E4m3Range : 0.0f;

  const Args& args_;
  const int work_index_;
  const WorkTile row_;
  const GatheredKeys gathered_;
  const int warp_;
  const int first_row_;  ///< of this warp
  unsigned char* const smem_;
  const typename Operands::KeyLoader keys_;
  const typename Operands::ValueLoader values_;
  TileQueue<Config, Hooks, Args, Config::kStages> queue_;
  GateVote<Shape::kRowWarps> vote_;
  Logits logits_;
  float unit_;                ///< scores -> natural units
  float to_log2_;             ///< scores -> log2 domain
  bool has_weights_ = false;  ///< the last visited tile still has to be multiplied with its values
  QueryFragments<typename Shape::QueryTile, Shape::kKeepsQueries> queries_;
  SoftmaxRows softmax_;
  Weights weights_;
  float output_[Shape::kColumnBlocks][4];
  int last_first_key_ = 0;  ///< of e4m3 rows: of the tile visited last
};

}  // namespace lacuna
