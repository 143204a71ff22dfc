// select/pooled/pooled.cuh where each key is a tile of its own and `keep` asks for no order:
// nothing is stored for a key but its bit. Logits are computed twice, on tensor cores: once for
// what the row's p are relative to, and once to decide.
//
// A block takes kRows neighbouring query tiles of a head; its warps share out the keys, kKeys at a
// time. A mean has 24 bits, a factor of the product 8 or 11: it is the sum of three of them, of a
// row scaled so that none is too small. Keys are factors as they are, so that products are exact.
//
// A lane takes eight neighbouring numbers of a key with one load, which are two factors of each of
// two products: the order of the numbers within 32 is its own, and the same for the means.
#pragma once

#include "arch/approx.cuh"
#include "arch/multiply/mma.cuh"
#include "arch/pack.cuh"
#include "base/kinds.cuh"
#include "loader/stored_rows.cuh"
#include "select/dims.cuh"
#include "select/keep/select_row.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class PooledTokens {
  using Element = typename Config::Element;
  static constexpr int kHeadDim = Config::kHeadDim;
  static constexpr int kRows = kMeanRows, kKeys = kMeanKeys;  ///< of a warp's product
  static constexpr int kWarps = Config::kThreads / 32;
  static constexpr int kParts = kMeanFactors;   ///< that a mean is the sum of
  static constexpr int kSteps = kHeadDim / 32;  ///< of the product
  /// Steps whose keys are under way at once.
  static constexpr int kLoads = kSteps % 2 == 0 ? 2 : kSteps;
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  static constexpr bool kIsNormal = Config::kNormalise == Normalise::kSoftmax || kIsRowMax;
  static_assert(kHeadDim % 32 == 0 && Config::kRows == kRows && Config::kColumnsAreTokens &&
                Config::kTileK == 1 && !Config::kOrdersTiles && !Config::kKeepsFirst);
  static_assert(kIsNormal || Config::kNormalise == Normalise::kNone,
                "the row of a summary has no log-sum-exp of its own");

  struct Smem {
    uint4 queries[kParts][kSteps][2][32];              ///< fragments, by lane; of the scaled means
    float logits[kWarps][kRows][kKeys + kMeanKeyPad];  ///< rows a quarter of the banks apart
    float largest[kWarps][kRows], weight[kWarps][kRows];
    float to_mean[kRows];  ///< the power of two that a row was divided by
    int visible[kRows];
  };
  static_assert(sizeof(Smem) == pooled_tokens_smem_bytes(kWarps, kHeadDim) &&
                sizeof(Smem) <= Config::kSmemBytes);

 public:
  __device__ __forceinline__ PooledTokens(const Args& args, unsigned char* smem)
      : args_(args),
        smem_(*reinterpret_cast<Smem*>(smem)),
        keys_(args.attend.n_k),
        warp_(warp_index()) {}

  __device__ __forceinline__ void run() {
    const int groups = count_row_groups<kRows>(args_);
    for (int number = block_index(); number < groups; number += kMostBlocks) {
      group_ = locate_row_group<kRows>(args_, number);
      const long long head = query_head(args_, group_.b, group_.h);
      load_queries(args_.predict.q_summary +
                   (head * args_.predict.keep_q_tiles + group_.first) * kHeadDim);
      if constexpr (kIsNormal) find_norms();
      count_visible_keys();
      __syncthreads();
      for (int first = warp_ * kKeys; first < keys_; first += kWarps * kKeys) decide(first);
      __syncthreads();
    }
  }

 private:
  __device__ __forceinline__ KeepRow row_of(int r) const {
    return keep_row_of<Config>(args_, group_, r);
  }

  // the means, as sums of factors

  __device__ __forceinline__ void load_queries(const float* means) {
    for (int r = warp_; r < kRows; r += kWarps) {
      float largest = 0.0f;
      for (int column = lane_index(); r < group_.rows && column < kHeadDim; column += 32) {
        largest = fmaxf(largest, fabsf(means[r * kHeadDim + column]));
      }
      largest = warp_reduce(largest, [](float a, float b) { return fmaxf(a, b); });
      if (lane_index() == 0) smem_.to_mean[r] = power_of_two(largest);
    }
    __syncthreads();
    for (int n = thread_index(); n < kSteps * 2 * 32; n += Config::kThreads) {
      const int lane = n % 32, half = n / 32 % 2, step = n / 64;
      const int column = step * 32 + lane % 4 * 8 + half * 4;
      float4 low = scaled_mean(means, lane / 4, column);
      float4 high = scaled_mean(means, lane / 4 + 8, column);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        smem_.queries[part][step][half][lane] = {take_part(low.x, low.y), take_part(high.x, high.y),
                                                 take_part(low.z, low.w),
                                                 take_part(high.z, high.w)};
      }
    }
    __syncthreads();
  }

  /// At most x and more than half of it, if it is an ordinary number.
  __device__ __forceinline__ static float power_of_two(float x) {
    const u32 exponent = __float_as_uint(x) >> 23;
    return exponent == 0 || exponent > 252 ? 1.0f : __uint_as_float(exponent << 23);
  }

  __device__ __forceinline__ float4 scaled_mean(const float* means, int r, int column) const {
    if (r >= group_.rows || !takes_element<Config>(column)) return {0.0f, 0.0f, 0.0f, 0.0f};
    const float4 x = *reinterpret_cast<const float4*>(means + r * kHeadDim + column);
    const float factor = 1.0f / smem_.to_mean[r];
    return {x.x * factor, x.y * factor, x.z * factor, x.w * factor};
  }

  /// What a pair of factors holds of two numbers, which keep the rest.
  __device__ __forceinline__ static u32 take_part(float& low, float& high) {
    const u32 pair = pack<Element>(low, high);
    low -= unpack_low<Element>(pair);
    high -= unpack_high<Element>(pair);
    return pair;
  }

  // the product

  /// The warp's logits of all rows and the keys from `first` on; those past the last one stand for
  /// it. NaN is nothing that a row sees.
  __device__ __forceinline__ void multiply(int first) {
    const TensorArg& k = args_.attend.k;
    const int row = lane_index() / 4, quad = lane_index() % 4;
    StoredRow<Config> keys[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int key = smaller(first + n * 8 + row, keys_ - 1);
      keys[n] = stored_row<Config, KvTensor::kKeys>(
          args_, k, group_.b, group_.h / args_.attend.heads_per_kv, key, quad * 8);
    }
    float sums[4][4] = {};
#pragma unroll 1
    for (int begin = 0; begin < kSteps; begin += kLoads) {
      uint4 loaded[kLoads][4];
#pragma unroll
      for (int step = 0; step < kLoads; ++step) {
#pragma unroll
        for (int n = 0; n < 4; ++n) loaded[step][n] = keys[n].moved((begin + step) * 32).chunk();
      }
#pragma unroll
      for (int step = 0; step < kLoads; ++step) multiply_step(sums, loaded[step], begin + step);
    }
    auto& logits = smem_.logits[warp_];
    const float scale = args_.attend.scale * Config::kTemperature;
    const float scales[2] = {scale * smem_.to_mean[row], scale * smem_.to_mean[row + 8]};
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float2 two = {sums[n][2 * r] * scales[r], sums[n][2 * r + 1] * scales[r]};
        if (two.x != two.x) two.x = -kInfinity;
        if (two.y != two.y) two.y = -kInfinity;
        *reinterpret_cast<float2*>(logits[row + 8 * r] + n * 8 + quad * 2) = two;
      }
    }
    __syncwarp();
  }

  __device__ __forceinline__ void multiply_step(float (&sums)[4][4], const uint4 (&keys)[4],
                                                int step) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 four = smem_.queries[part][step][half][lane_index()];
        const u32 a[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          mma_m16n8k16<Element>(sums[n], a, half == 0 ? keys[n].x : keys[n].z,
                                half == 0 ? keys[n].y : keys[n].w);
        }
      }
    }
  }

  // what a row's p are relative to

  /// Of this lane's key, the logits of rows that do not see it, or exclude it.
  __device__ __forceinline__ void hide(int first) {
    if constexpr (!Config::kHasMask && !kExcludesTiles<Config>) return;
    const int j = first + lane_index();
#pragma unroll 1
    for (int r = 0; r < group_.rows; ++r) {
      if (j < keys_ && !weighs(row_of(r), j)) {
        smem_.logits[warp_][r][lane_index()] = -kInfinity;
      }
    }
  }
  __device__ __forceinline__ bool weighs(const KeepRow& row, int j) const {
    return sees_tile<Config, Hooks>(args_, row, j) && !excludes_tile<Config, Hooks>(args_, row, j);
  }

  /// largest[0] and weight[0]: of a row the largest logit, 0 if it sees none, and 1 / the sum of
  /// exp(logit - largest).
  __device__ __forceinline__ void find_norms() {
    float largest[kRows], weight[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) largest[r] = -kInfinity, weight[r] = 0.0f;
    for (int first = warp_ * kKeys; first < keys_; first += kWarps * kKeys) {
      multiply(first);
      hide(first);
      const bool exists = first + lane_index() < keys_;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float logit = smem_.logits[warp_][r][lane_index()];
        add_weight(largest[r], weight[r], exists ? logit : -kInfinity, 1.0f);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        const float other = __shfl_xor_sync(kAllLanes, weight[r], lanes);
        add_weight(largest[r], weight[r], __shfl_xor_sync(kAllLanes, largest[r], lanes), other);
      }
      if (lane_index() == 0) {
        smem_.largest[warp_][r] = largest[r];
        smem_.weight[warp_][r] = weight[r];
      }
    }
    __syncthreads();
    if (thread_index() >= kRows) return;
    const int r = thread_index();
    float most = -kInfinity, sum = 0.0f;
#pragma unroll 1
    for (int warp = 0; warp < kWarps; ++warp) {
      add_weight(most, sum, smem_.largest[warp][r], smem_.weight[warp][r]);
    }
    smem_.largest[0][r] = most == -kInfinity ? 0.0f : most;
    smem_.weight[0][r] = sum > 0.0f ? (kIsRowMax ? 1.0f : 1.0f / sum) : sum;
  }

  /// `more` of exp(x), which may be none. RowSum's merge (select/tokens/token_reduce.cuh) keeps a
  /// NaN, too, of which there is none here: with 16 rows in a lane that spills.
  __device__ __forceinline__ static void add_weight(float& largest, float& weight, float x,
                                                    float more) {
    const float raised = fmaxf(largest, x);
    if (raised == -kInfinity) return;
    weight = weight * exp2_approx((largest - raised) * kLog2E) +
             more * exp2_approx((x - raised) * kLog2E);
    largest = raised;
  }

  // decisions

  __device__ __forceinline__ void count_visible_keys() {
    for (int r = warp_; r < group_.rows; r += kWarps) {
      const int visible = count_visible<Config, Hooks>(args_, row_of(r), WarpTeam());
      if (lane_index() == 0) smem_.visible[r] = visible;
    }
  }

  /// A word of each row's bits.
  __device__ __forceinline__ void decide(int first) {
    multiply(first);
    const int j = first + lane_index();
#pragma unroll 1
    for (int r = 0; r < group_.rows; ++r) {
      const KeepRow row = row_of(r);
      bool keep = j < keys_ && sees_tile<Config, Hooks>(args_, row, j);
      if (keep) {
        TileValue value;
        value.score = -kInfinity;
        if (!excludes_tile<Config, Hooks>(args_, row, j))
          value.score = smem_.logits[warp_][r][lane_index()];
        value.p = value.score;
        if constexpr (kIsNormal)
          value.p = exp2_approx((value.score - smem_.largest[0][r]) * kLog2E) * smem_.weight[0][r];
        keep = keeps_tile<Config, Hooks>(args_, row, j, value, smem_.visible[r]);
      }
      const u32 bits = __ballot_sync(kAllLanes, keep);
      if (lane_index() == 0) kept_words<Config>(args_, row)[first / 32] = bits;
    }
  }

  const Args& args_;
  Smem& smem_;
  const int keys_, warp_;
  RowGroup group_ = {};
};

}  // namespace lacuna
