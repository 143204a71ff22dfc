// The two rows of a lane in predict_token_softmax: from integer products of a step to logits, and
// what is kept of them while the block walks along the keys.
//
// Logits are in log2. What belongs to a row alone (what smoothing the keys took from it) is left
// out: it is in the row's sum as well, so no weight depends on it.
#pragma once

#include "arch/approx.cuh"
#include "arch/warp.cuh"
#include "base/mask_pair.cuh"
#include "base/math.cuh"
#include "select/token_softmax/token_softmax_shape.cuh"

namespace lacuna {

/// log2 of a sum of exponentials in two parts, over the keys that one lane met. Exponents are
/// relative to 0 as long as the logits allow that, else to one of them, which need not be the
/// largest: no exponential overflows, and what becomes 0 is too small to count. The lanes of a
/// quad, which share a row, have the same shift.
struct Log2Sum {
  static constexpr float kFarthest = 60.0f;  ///< from 0, the first logit
  static constexpr float kMost = 64.0f;      ///< the largest exponent
  static constexpr float kMostExponential = 18446744073709551616.0f;

  float sum = 0.0f;        ///< of exp2(logit - shift)
  float shift = 0.0f;      ///< of exponents
  bool has_shift = false;  ///< Has it met a logit, that says what the shift is?

  /// Makes room for the largest logit of a quad.
  __device__ __forceinline__ void raise(float logit) {
    if (!(logit > (has_shift ? shift + kMost : -kInfinity))) return;
    const float raised = !has_shift && fabsf(logit) <= kFarthest ? 0.0f : logit;
    sum *= exp2_approx(shift - raised);
    shift = raised;
    has_shift = true;
  }
  /// Of the quad. inf where no key was met, or a logit was NaN or infinite: such a row takes no
  /// part.
  __device__ __forceinline__ float log2_of_quad() const {
    float all = sum;
    all += __shfl_xor_sync(kAllLanes, all, 1);
    all += __shfl_xor_sync(kAllLanes, all, 2);
    const float x = shift + log2_approx(all);
    return x > -kInfinity ? x : kInfinity;
  }
};

/// Of a lane, rows g and g + 8 of its warp's 16.
template <class Config, class Hooks, class Args>
class TokenSoftmaxRows {
  using Shape = TokenSoftmaxShape<Config>;
  using Control = typename Shape::Control;
  using Message = typename Shape::Message;
  using Turn = SoftmaxTurn<Shape::kWarpgroups>;
  static constexpr int kBlocks = Shape::kParts * Shape::kBlocks;  ///< of 8 keys, in a step
  static constexpr int kBlocksOfRun = Shape::kRunKeys / 8;
  using Logits = float[kBlocks][4];
  /// Of each run and row, the lane's largest exponential, or their sum.
  using Weights = float[2 * Shape::kRuns];

 public:
  using Sums = int[Shape::kParts][Shape::kBlocks][4];
  /// What a lane of a quad stores of a step: log2 of the weights of both rows and some runs, or of
  /// one row and one run.
  struct Stored {
    static constexpr int kCount = 2 * Shape::kRuns / 4;
    float log2_weight[kCount];
    __device__ __forceinline__ static int run(int n) { return (lane_index() % 4 * kCount + n) / 2; }
    __device__ __forceinline__ static int row(int n) { return (lane_index() % 4 * kCount + n) % 2; }
  };

  __device__ __forceinline__ TokenSoftmaxRows(const Args& args, const KeepRow& row)
      : args_(args), row_(row), first_(row.q0 + warp_index() * kWarpRows + lane_index() / 4) {
    const PredictArgs& predict = args.predict;
    const long long head = query_head(args, row.b, row.h);
    const float to_log2 = args.attend.scale * Config::kTemperature * kLog2E;
    unit_ =
        predict.estimate_q_scale[head * predict.estimate_q_groups + Shape::QueryGroups::of(q(0))] *
        to_log2;
  }

  /// Takes the products of the step in a slot.
  __device__ __forceinline__ void take(const Sums& sums, const Control& control, u32 slot) {
    const Message& message = control.messages[slot];
    const bool is_plain = message.is_partial == 0 && is_plain_;
    Logits logits;
    scale(logits, sums, control, slot);
    Turn::await();
    if (is_plain) {
      const float2 of_rows = weigh<false>(logits);
      Turn::pass();
      if (add_plain(of_rows)) return;
    } else {
      Turn::pass();
    }
    take_any(logits, message);
  }

  /// What a lane of a quad has to store of the step that was taken; by whole warps.
  __device__ __forceinline__ Stored share_weights() const {
    Weights half, quarter;
    exchange<2 * Shape::kRuns, 2>(weights_, half);
    exchange<Shape::kRuns, 1>(half, quarter);
    Stored stored;
#pragma unroll
    for (int n = 0; n < Stored::kCount; ++n)
      stored.log2_weight[n] =
          log2_approx(quarter[n]) + (stored.row(n) == 0 ? rows_[0].shift : rows_[1].shift);
    return stored;
  }

  /// The sums of the rows, to shared memory: those of a query tile.
  __device__ __forceinline__ void publish(float (&log2_sum)[Config::kTileQ]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = rows_[r].log2_of_quad();
      if (lane_index() % 4 == 0) log2_sum[in_tile(r)] = q(r) < args_.attend.n_q ? sum : kInfinity;
    }
  }

  /// Row r of the lane in its query tile.
  __device__ __forceinline__ int in_tile(int r) const { return q(r) - row_.q0; }

 private:
  __device__ __forceinline__ int q(int r) const { return first_ + 8 * r; }

  /// Where no row of the warp has a shift, and all keys are visible: what was weighed belongs to
  /// the sums. False, and they stay as they are, if an exponential is too large.
  __device__ __forceinline__ bool add_plain(const float2& of_rows) {
    // By their bits, which says it of NaN as well.
    int largest = __float_as_int(weights_[0]);
#pragma unroll
    for (int n = 1; n < 2 * Shape::kRuns; ++n)
      largest = larger(largest, __float_as_int(weights_[n]));
    const bool is_too_large = largest > __float_as_int(Log2Sum::kMostExponential);
    if (__any_sync(kAllLanes, is_too_large)) return false;
    rows_[0].sum += of_rows.x;
    rows_[1].sum += of_rows.y;
    return true;
  }

  __device__ __forceinline__ void take_any(Logits& logits, const Message& message) {
    if (message.is_partial != 0) hide(logits, message);
    bool is_plain = true;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float largest = logits[0][2 * r];
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
        largest = fmaxf(largest, fmaxf(logits[n][2 * r], logits[n][2 * r + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      rows_[r].raise(largest);
      is_plain &= rows_[r].has_shift && rows_[r].shift == 0.0f;
    }
    const float2 sums = weigh<true>(logits);
    rows_[0].sum += sums.x;
    rows_[1].sum += sums.y;
    is_plain_ = __all_sync(kAllLanes, is_plain);
  }

  /// Exponentials to weights of runs. Returns the sums by row. The largest is found by bits: they
  /// are not negative, and the compiler then compares three at a time.
  template <bool kIsShifted>
  __device__ __forceinline__ float2 weigh(const Logits& logits) {
    float sum[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float shift = kIsShifted ? rows_[r].shift : 0.0f;
      float even = 0.0f, odd = 0.0f;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        float& weight = weights_[n / kBlocksOfRun * 2 + r];
        const bool is_first = n % kBlocksOfRun == 0;
        float x = logits[n][2 * r], y = logits[n][2 * r + 1];
        if constexpr (kIsShifted) x -= shift, y -= shift;
        x = exp2_approx(x), y = exp2_approx(y);
        if constexpr (Config::kSums) {
          even = is_first ? x : even + x;
          odd = is_first ? y : odd + y;
          if (n % kBlocksOfRun == kBlocksOfRun - 1) weight = even + odd;
        } else {
          even = n == 0 ? x : even + x;
          odd = n == 0 ? y : odd + y;
          const int most = larger(__float_as_int(x), __float_as_int(y));
          weight = __int_as_float(is_first ? most : larger(__float_as_int(weight), most));
        }
      }
      sum[r] = even + odd;
      if constexpr (Config::kSums) {
        sum[r] = weights_[r];
#pragma unroll
        for (int run = 1; run < Shape::kRuns; ++run) sum[r] += weights_[2 * run + r];
      }
    }
    return {sum[0], sum[1]};
  }

  /// Two lanes have weights of the same runs and rows. Each gives half of them away, and merges the
  /// other half with what it is given.
  template <int kCount, int kLanes>
  __device__ __forceinline__ static void exchange(const Weights& all, Weights& half) {
    const bool takes_second = (lane_index() & kLanes) != 0;
#pragma unroll
    for (int n = 0; n < kCount / 2; ++n) {
      const float first = all[n], second = all[n + kCount / 2];
      const float given = __shfl_xor_sync(kAllLanes, takes_second ? first : second, kLanes);
      const float own = takes_second ? second : first;
      half[n] = Config::kSums ? own + given
                              : __int_as_float(larger(__float_as_int(own), __float_as_int(given)));
    }
  }

  /// scale * (integer * q_scale * k_scale + column_bias).
  __device__ __forceinline__ void scale(Logits& logits, const Sums& sums, const Control& control,
                                        u32 slot) const {
#pragma unroll
    for (int n = 0; n < kBlocks; n += 2) {
      const int part = n / Shape::kBlocks, block = n % Shape::kBlocks;
      const float unit =
          unit_ * control.scale[slot][lane_index() % 4][part][block * 8 / Shape::kUnitKeys];
      float4 added = {0.0f, 0.0f, 0.0f, 0.0f};
      if constexpr (Config::kHasColumnBias)
        added = *reinterpret_cast<const float4*>(control.bias[slot][part][lane_index() % 4][block]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int first = sums[part][block][i], second = sums[part][block + 1][i];
        logits[n][i] = fmaf(static_cast<float>(first), unit, i % 2 == 0 ? added.x : added.y);
        logits[n + 1][i] = fmaf(static_cast<float>(second), unit, i % 2 == 0 ? added.z : added.w);
      }
    }
  }
  static_assert(Shape::kUnitKeys % 16 == 0);

  __device__ __forceinline__ void hide(Logits& logits, const Message& message) const {
    const auto mask_parts = prepare_mask<Hooks>(args_, row_.h, row_.b);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      const int first = message.key[n / kBlocksOfRun] + n % kBlocksOfRun * 8;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = first + lane_index() % 4 * 2 + i % 2;
        bool visible = k < args_.attend.n_k;
        if constexpr (Config::kHasMask)
          visible = visible && sees<Hooks>(args_, mask_parts, q(i / 2), k, row_.h, row_.b);
        if (!visible) logits[n][i] = -kInfinity;
      }
    }
  }

  const Args& args_;
  const KeepRow& row_;
  const int first_;  ///< row 0 of the lane, a query
  float unit_;       ///< an integer product in log2, but for the scale of the keys
  Log2Sum rows_[2];
  Weights weights_;        ///< of the step that was taken
  bool is_plain_ = false;  ///< Has every row of the warp met a key, and none a shift?
};

}  // namespace lacuna
