// Everything that is wanted of each token of q or k, from one read: summaries and self-similarities
// of tiles, integers and their scales for attend and for the estimate, what smoothing took away.
//
// A block takes kTokens tokens of one head into registers (loader/token_rows.cuh). Row results and
// the sums of warps meet in shared memory; every sum has a fixed order. Tokens past the end have
// zero integers and biases, so that whole tiles can be read, and count nowhere.
#pragma once

#include "base/math.cuh"
#include "base/pin.cuh"
#include "kernel/prepare_side.cuh"
#include "loader/token_rows.cuh"
#include "quantise/divide.cuh"
#include "quantise/groups.cuh"

namespace lacuna {

/// What the warps of a block tell each other; per row unless said.
template <class Layout, int kHeadDim>
struct PrepareSmem {
  float largest[Layout::kRows];          ///< magnitude; NaN left out
  float length[Layout::kRows];           ///< Euclidean; of cosines its reciprocal
  float scale[Layout::kRows];            ///< of the row's group
  float sums[Layout::kWarps][kHeadDim];  ///< of one warp's rows, by column
};

/// Which rows a column sum takes: all, those that have a direction, or those made unit length.
enum class RowUse { kAll, kDirected, kUnit };

template <class Config, class Args>
class PrepareBlock {
  static constexpr bool kIsQuery = Config::kIsQuery;
  static constexpr int kHeadDim = Config::kHeadDim;
  static constexpr bool kHasSimilarity = Config::kSimilarityTile != 0;
  static constexpr RowUse kSimilarityRows = Config::kGramMax ? RowUse::kDirected : RowUse::kUnit;
  using Element = typename Config::Element;
  using Layout = TokenLayout<kHeadDim, Config::kTokens, Config::kThreads>;
  using Smem = PrepareSmem<Layout, kHeadDim>;
  using Columns = float[Layout::kSteps][8];  ///< one number for each column of a lane
  static_assert(sizeof(Smem) <= Config::kSmemBytes);
  static_assert(Config::kSmooth || !Config::kSmoothSummary);

 public:
  __device__ __forceinline__ PrepareBlock(const Args& args, unsigned char* smem)
      : args_(args),
        side_(prepare_side<kIsQuery>(args)),
        smem_(*reinterpret_cast<Smem*>(smem)),
        warp_(warp_index()),
        row_(Layout::first_row()) {
    const int blocks = side_.padded / Config::kTokens;
    head_ = block_index() / blocks;
    first_ = (block_index() - head_ * blocks) * Config::kTokens;
    left_ = side_.n - first_;
  }

  __device__ __forceinline__ void run() {
    load();
    measure_rows();
    if constexpr (Config::kSummaryTile != 0) {
      reduce_tiles<Config::kSummaryTile, RowUse::kAll, Config::kSmoothSummary>(
          [&](int tile, const float* sums, int parts) { write_summary(tile, sums, parts); });
    }
    if constexpr (kHasSimilarity) {
      reduce_tiles<Config::kSimilarityTile, kSimilarityRows, Config::kSmooth>(
          [&](int tile, const float* sums, int parts) { write_similarity(tile, sums, parts); });
      if constexpr (Config::kEstimateBits != 0) forget();
    }
    if constexpr (Config::kBits != 0) {
      using Groups = QuantGroups<Config::kGroup, kIsQuery, Config::kTile>;
      find_scales<Groups>(side_.scale, side_.groups, integer_range(Config::kBits));
      write_values(side_.values);
      forget();
    }
    if constexpr (Config::kEstimateBits != 0) {
      using Groups = QuantGroups<Config::kEstimateGroup, kIsQuery, Config::kEstimateTile>;
      find_scales<Groups>(side_.estimate_scale, side_.estimate_groups,
                          integer_range(Config::kEstimateBits));
      write_values(side_.estimate_values);
    }
    if constexpr (Config::kBias) write_biases();
  }

 private:
  /// What was made of the rows so far does not wait in registers for its next use: the 16-bit rows
  /// take half the room.
  __device__ __forceinline__ void forget() {
#pragma unroll
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        uint4& chunk = rows_[pass][step];
        pin(chunk.x), pin(chunk.y), pin(chunk.z), pin(chunk.w);
      }
    }
  }

  __device__ __forceinline__ int row_of(int pass) const {
    return row_ + pass * Layout::kRowsPerPass;
  }
  __device__ __forceinline__ bool is_real(int pass) const { return row_of(pass) < left_; }
  /// A pass of all warps may be longer than the block.
  __device__ __forceinline__ bool is_in_block(int pass) const {
    return Layout::kRows == Config::kTokens || row_of(pass) < Config::kTokens;
  }

  __device__ __forceinline__ void load() {
    const int b = head_ / side_.heads, h = head_ - b * side_.heads;
#pragma unroll
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        rows_[pass][step] = uint4{0, 0, 0, 0};
        if (!is_real(pass) || !is_in_block(pass)) continue;
        rows_[pass][step] = *reinterpret_cast<const uint4*>(
            element_of<Element>(side_.x, b, h, first_ + row_of(pass), Layout::column(step)));
      }
    }
    if constexpr (Config::kSmooth) load_columns(mean_, side_.mean, head_);
  }

  __device__ __forceinline__ static void load_columns(Columns& columns, const float* array,
                                                      long long head) {
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      load_floats(columns[step], array + head * kHeadDim + Layout::column(step));
    }
  }

  /// x - mean of one chunk; of a token past the end: anything.
  template <bool kSmooth = Config::kSmooth>
  __device__ __forceinline__ void chunk(float (&x)[8], int pass, int step) const {
    unpack_chunk<Element>(x, rows_[pass][step]);
#pragma unroll
    for (int e = 0; kSmooth && e < 8; ++e) x[e] -= mean_[step][e];
  }

  __device__ __forceinline__ void measure_rows() {
    if constexpr (!kHasSimilarity && Config::kBits == 0 && Config::kEstimateBits == 0) return;
#pragma unroll
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
      float largest = 0.0f, square = 0.0f;
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        chunk(x, pass, step);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          largest = fmaxf(largest, fabsf(x[e]));
          square = fmaf(x[e], x[e], square);
        }
      }
      largest = Layout::row_max(largest);
      if (!is_real(pass)) largest = 0.0f;
      const bool is_first_lane = lane_index() % Layout::kLanesPerRow == 0;
      if (is_first_lane) smem_.largest[row_of(pass)] = largest;
      if constexpr (!kHasSimilarity) continue;
      const float length = measure_length(pass, largest, Layout::row_sum(square));
      if (is_first_lane) smem_.length[row_of(pass)] = length;
    }
    __syncthreads();
  }

  /// The Euclidean length of a row whose squares add up to `square`, or what makes it unit length;
  /// 0 for a row of zeros, or with a NaN in it. Squares that leave the range of f32 are taken again
  /// of scaled numbers.
  __device__ __forceinline__ float measure_length(int pass, float largest, float square) {
    float factor = 1.0f;
    const bool is_in_range = square > 0x1p-90f && square < 0x1p120f;
    if (__any_sync(kAllLanes, largest != 0.0f && !is_in_range)) {
      if (largest < 0x1p-40f) factor = 0x1p96f;
      if (largest > 0x1p40f) factor = 0x1p-96f;
      square = 0.0f;
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        chunk(x, pass, step);
#pragma unroll
        for (int e = 0; e < 8; ++e) square = fmaf(x[e] * factor, x[e] * factor, square);
      }
      square = Layout::row_sum(square);
    }
    if (largest == 0.0f || square != square) return 0.0f;
    if (Config::kGramMax) return sqrtf(square) / factor;
    return fminf(rsqrtf(square) * factor, 0x1.fffffep127f);
  }

  /// Column sums over the real tokens of each tile: finish(tile, sums, parts) is called by one warp
  /// for each tile of the block, with `parts` rows of partial sums in shared memory.
  template <int kTile, RowUse kUse, bool kSmooth, class Finish>
  __device__ __forceinline__ void reduce_tiles(const Finish& finish) {
    static_assert(Config::kTokens % kTile == 0 && (kTile & (kTile - 1)) == 0);
    constexpr int kRun = smaller(kTile, Layout::kRowsPerWarp);  // rows that a warp sums by itself
    constexpr int kPassesOfRun = ceil_div(kRun, Layout::kRowsPerPass);
    constexpr int kRunRows = smaller(kRun, Layout::kRowsPerPass);  // within one pass
#pragma unroll
    for (int first = 0; first < Layout::kPasses; first += kPassesOfRun) {
      Columns sums;
      sum_passes<kPassesOfRun, kRunRows, kUse, kSmooth>(sums, first);
#pragma unroll
      for (int run = 0; run < Layout::kRowsPerPass; run += kRunRows) {
        if (lane_index() / Layout::kLanesPerRow == run) store_sums(sums);
        if constexpr (kTile > Layout::kRowsPerWarp) continue;
        __syncwarp();
        const int tile =
            (warp_ * Layout::kRowsPerWarp + first * Layout::kRowsPerPass + run) / kTile;
        if (tile < Config::kTokens / kTile) finish(tile, smem_.sums[warp_], 1);
        __syncwarp();
      }
    }
    if constexpr (kTile > Layout::kRowsPerWarp) {
      constexpr int kParts = kTile / Layout::kRowsPerWarp;
      __syncthreads();
      if (warp_ < Config::kTokens / kTile) finish(warp_, smem_.sums[warp_ * kParts], kParts);
      __syncthreads();
    }
  }

  /// Over passes of this warp, then over runs of kRunRows neighbouring rows of a pass.
  template <int kPassesOfRun, int kRunRows, RowUse kUse, bool kSmooth>
  __device__ __forceinline__ void sum_passes(Columns& sums, int first) {
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
#pragma unroll
      for (int e = 0; e < 8; ++e) sums[step][e] = 0.0f;
#pragma unroll
      for (int pass = first; pass < first + kPassesOfRun; ++pass) {
        float x[8];
        chunk<kSmooth>(x, pass, step);
        const float length = kUse == RowUse::kAll ? 1.0f : smem_.length[row_of(pass)];
        const bool counts = is_real(pass) && length > 0.0f;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          // What is NaN adds nothing: it is the business of its own token.
          if (counts && x[e] == x[e]) {
            sums[step][e] += kUse == RowUse::kUnit ? x[e] * length : x[e];
          }
        }
      }
#pragma unroll
      for (int e = 0; e < 8; ++e) {
#pragma unroll
        for (int rows = 1; rows < kRunRows; rows *= 2) {
          sums[step][e] += __shfl_xor_sync(kAllLanes, sums[step][e], rows * Layout::kLanesPerRow);
        }
      }
    }
  }

  __device__ __forceinline__ void store_sums(const Columns& sums) {
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      float4* target = reinterpret_cast<float4*>(smem_.sums[warp_] + Layout::column(step));
      target[0] = {sums[step][0], sums[step][1], sums[step][2], sums[step][3]};
      target[1] = {sums[step][4], sums[step][5], sums[step][6], sums[step][7]};
    }
  }

  __device__ __forceinline__ static float column_sum(const float* sums, int parts, int column) {
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) sum += sums[part * kHeadDim + column];
    return sum;
  }

  __device__ __forceinline__ void write_summary(int tile, const float* sums, int parts) const {
    constexpr int kTile = Config::kSummaryTile;
    if (tile * kTile >= left_) return;
    const auto tokens = static_cast<float>(smaller(kTile, left_ - tile * kTile));
    const long long number = static_cast<long long>(head_) * side_.tiles + first_ / kTile + tile;
    for (int column = lane_index(); column < kHeadDim; column += 32) {
      side_.summary[number * kHeadDim + column] = column_sum(sums, parts, column) / tokens;
    }
  }

  __device__ __forceinline__ void write_similarity(int tile, const float* sums, int parts) const {
    constexpr int kTile = Config::kSimilarityTile;
    if (tile * kTile >= left_) return;
    int tokens = 0;  // that have a direction
    float longest = 0.0f;
    for (int row = tile * kTile + lane_index(); row < (tile + 1) * kTile; row += 32) {
      tokens += smem_.length[row] > 0.0f;
      if (Config::kGramMax) longest = fmaxf(longest, smem_.length[row]);
    }
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      tokens += __shfl_xor_sync(kAllLanes, tokens, lanes);
      longest = fmaxf(longest, __shfl_xor_sync(kAllLanes, longest, lanes));
    }
    float square = 0.0f;
    for (int column = lane_index(); column < kHeadDim; column += 32) {
      float mean = column_sum(sums, parts, column) / static_cast<float>(tokens);
      if (Config::kGramMax) mean /= longest;  // the largest of the Gram matrix is longest^2
      square = fmaf(mean, mean, square);
    }
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) square += __shfl_xor_sync(kAllLanes, square, lanes);
    if (lane_index() != 0) return;
    side_.similarity[static_cast<long long>(head_) * side_.tiles + first_ / kTile + tile] =
        tokens == 0 ? -kInfinity : square;
  }

  /// The scale of each group to `scales`, and for each row to shared memory. A few lanes share the
  /// rows of a group.
  template <class Groups>
  __device__ __forceinline__ void find_scales(float* scales, int groups, float range) {
    constexpr int kTeam = smaller(Groups::kTokens, 32);
    constexpr int kGroups = Config::kTokens / Groups::kTokens;
    static_assert(Config::kTokens % Groups::kTokens == 0);
    __syncthreads();  // scales of an earlier call have been read
    for (int slot = thread_index(); slot < kGroups * kTeam; slot += Config::kThreads) {
      const int group = slot / kTeam;
      float largest = 0.0f;
      for (int member = slot % kTeam; member < Groups::kTokens; member += kTeam) {
        largest = fmaxf(largest, smem_.largest[Groups::token(group, member)]);
      }
#pragma unroll
      for (int lanes = 1; lanes < kTeam; lanes *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, lanes));
      }
      const float scale = largest == 0.0f ? 1.0f : largest / range;
      const int number = Groups::of(first_) + group;
      if (slot % kTeam == 0 && number < groups) {
        scales[static_cast<long long>(head_) * groups + number] = scale;
      }
      for (int member = slot % kTeam; member < Groups::kTokens; member += kTeam) {
        smem_.scale[Groups::token(group, member)] = scale;
      }
    }
    __syncthreads();
  }

  __device__ __forceinline__ void write_values(signed char* values) const {
    signed char* target =
        values + (static_cast<long long>(head_) * side_.padded + first_) * kHeadDim;
#pragma unroll
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
      if (!is_in_block(pass)) continue;
      const Divisor divisor(smem_.scale[row_of(pass)]);
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        chunk(x, pass, step);
        const uint2 bytes = quantise_chunk(x, divisor);
        *reinterpret_cast<uint2*>(target + row_of(pass) * kHeadDim + Layout::column(step)) =
            is_real(pass) ? bytes : uint2{0, 0};
      }
    }
  }

  /// q: . k_mean of its KV head, q not smoothed. k: . q_mean of each query head that reads it.
  __device__ __forceinline__ void write_biases() {
    const int copies = kIsQuery ? 1 : args_.attend.heads_per_kv;
    for (int copy = 0; copy < copies; ++copy) {
      forget();
      const long long head = kIsQuery ? head_ : head_ * args_.attend.heads_per_kv + copy;
      Columns onto;
      load_columns(onto, side_.onto, kIsQuery ? head / args_.attend.heads_per_kv : head);
      float* target = side_.bias + head * side_.padded + first_;
#pragma unroll
      for (int pass = 0; pass < Layout::kPasses; ++pass) {
        const float dot = project(onto, pass);
        if (lane_index() % Layout::kLanesPerRow == 0 && is_in_block(pass)) {
          target[row_of(pass)] = is_real(pass) ? dot : 0.0f;
        }
      }
    }
  }

  __device__ __forceinline__ float project(const Columns& onto, int pass) const {
    float dot = 0.0f;
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      float x[8];
      chunk<Config::kSmooth && !kIsQuery>(x, pass, step);
#pragma unroll
      for (int e = 0; e < 8; ++e) dot = fmaf(x[e], onto[step][e], dot);
    }
    return Layout::row_sum(dot);
  }

  const Args& args_;
  const PrepareSide side_;
  Smem& smem_;
  int warp_, row_;
  int head_;   ///< of all batch entries
  int first_;  ///< token of the block
  int left_;   ///< tokens from there to the end; negative where all are past it
  uint4 rows_[Layout::kPasses][Layout::kSteps];
  Columns mean_;
};

/// Config: kIsQuery; kTokens; kSmooth, kSmoothSummary; kSummaryTile, kSimilarityTile (0: none),
/// kGramMax; kBits (0, 8), kGroup, kTile; kEstimateBits (0, 4, 8), kEstimateGroup, kEstimateTile;
/// kBias.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void prepare_tokens(const Args& args) {
  extern __shared__ __align__(128) unsigned char block_smem[];
  PrepareBlock<Config, Args>(args, block_smem).run();
}

}  // namespace lacuna
