// What the later kernels need of each token of q or k, from one read: summaries and
// self-similarities of tiles, integers and their scales for attend and for the estimate, what
// smoothing took away.
//
// A block takes kTokens tokens of one head into registers (prepare/rows.cuh). Instructions
// are what it has to be sparing of, a dozen for each element: a first pass takes all that needs
// nothing but the element, a second one weighs rows by their length, the last one makes integers.
// Up to one barrier before that last pass, a warp works by itself: sums of its rows wait in shared
// memory, and nothing of one row is reduced before all rows of the warp can be at once. What hardly
// any row has (NaN, infinity, squares beyond f32) is looked for in the results, and then worked out
// again with care. Every sum has a fixed order. Tokens past the end have zero integers and biases,
// so that whole tiles can be read, and count nowhere.
#pragma once

#include "prepare/integers.cuh"
#include "prepare/sums.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

template <class Config, class Args, bool kStay = false>
class PrepareBlock {
  static constexpr bool kIsQuery = Config::kIsQuery;
  static constexpr bool kHasSummary = Config::kSummaryTile != 0;
  static constexpr bool kHasSimilarity = Config::kSimilarityTile != 0;
  static constexpr bool kHasIntegers = Config::kBits != 0 || Config::kEstimateBits != 0;
  using Element = typename Config::Element;
  using Rows = PrepareRows<Config, Args>;
  using Sums = PrepareSums<Config, Args, kStay>;
  using Integers = PrepareIntegers<Config, Args>;
  using Layout = typename Rows::Layout;
  using Columns = typename Rows::Columns;
  using PerPass = typename Rows::PerPass;

  /// What the warps of a block tell each other.
  struct Smem {
    typename Sums::Smem sums;
    typename Integers::Smem integers;
  };
  static_assert(Config::kTokens <= kPreparedTokens);
  static_assert(sizeof(Smem) <= prepare_smem_bytes(Layout::kWarps, Config::kHeadDim) &&
                sizeof(Smem) <= Config::kSmemBytes);
  static_assert(Config::kSmooth || !Config::kSmoothSummary);

 public:
  __device__ __forceinline__ PrepareBlock(const Args& args, unsigned char* smem, int number)
      : args_(args),
        rows_(args, number),
        smem_(*reinterpret_cast<Smem*>(smem)),
        sums_(smem_.sums),
        integers_(smem_.integers) {}

  /// `known`: tokens whose summaries stay, as PrepareSums counts them.
  __device__ __forceinline__ void run(int known) {
    if (!rows_.exist()) return;
    if constexpr (kStay) {
      sums_.multiply_known(rows_, known);
      if (smaller(rows_.first() + Config::kTokens, rows_.side().n) <= known) return;
    }
    rows_.load();
    sums_.prefetch_queries(rows_);
    take_rows();
    if constexpr (kHasSimilarity) {
      rows_.forget();
      weigh_rows();
    }
    if constexpr (kHasSummary || kHasSimilarity || kHasIntegers) __syncthreads();
    integers_.write(rows_);
    sums_.finish_tiles(rows_);
    if constexpr (Config::kBias && !kIsQuery) write_key_biases();
  }

 private:
  // the first pass

  __device__ __forceinline__ void take_rows() {
    using R = typename Sums::template Run<Config::kSummaryTile>;
    constexpr bool kProjects = Config::kBias && kIsQuery;
    const PrepareSide& side = rows_.side();
    Columns onto;
    if constexpr (kProjects) {
      Rows::load_columns(onto, side.onto, rows_.head() / args_.attend.heads_per_kv);
    }
    PerPass squares, largest, dots;
#pragma unroll
    for (int first = 0; first < Layout::kPasses; first += R::kPasses) {
      Columns sums = {};
#pragma unroll
      for (int pass = first; pass < first + R::kPasses; ++pass) {
        squares[pass] = dots[pass] = 0.0f;
        u32 magnitudes = 0;
        float of_differences = 0.0f;
#pragma unroll
        for (int step = 0; step < Layout::kSteps; ++step) {
          float x[8];
          rows_.raw_chunk(x, pass, step);
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            if (kProjects) dots[pass] = fmaf(x[e], onto[step][e], dots[pass]);
            if (kHasSummary && !Config::kSmoothSummary) sums[step][e] += x[e];
          }
          rows_.smooth(pass, step);
          rows_.chunk(x, pass, step);
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            if (Config::kSmoothSummary) sums[step][e] += x[e];
            if (kHasSimilarity) squares[pass] = fmaf(x[e], x[e], squares[pass]);
            if (kHasIntegers && Config::kSmooth) {
              of_differences = fmaxf(of_differences, fabsf(x[e]));
            }
          }
          if constexpr (kHasIntegers && !Config::kSmooth) {
            const uint4& pairs = rows_.loaded(pass, step);
            magnitudes = larger_magnitudes<Element>(magnitudes, pairs.x);
            magnitudes = larger_magnitudes<Element>(magnitudes, pairs.y);
            magnitudes = larger_magnitudes<Element>(magnitudes, pairs.z);
            magnitudes = larger_magnitudes<Element>(magnitudes, pairs.w);
          }
        }
        largest[pass] = Config::kSmooth ? of_differences
                                        : fmaxf(unpack_low<Element>(magnitudes),
                                                unpack_high<Element>(magnitudes));
      }
      if constexpr (kHasSummary) {
        sums_.put_summary(rows_, sums, first);
      }
    }
    if constexpr (kProjects) write_bias(side.bias, rows_.head(), dots);
    if constexpr (kHasIntegers) {
      leave_out_infinity(largest);
      integers_.tell_largest(rows_, largest);
    }
    if constexpr (kHasSimilarity) measure_lengths(squares);
  }

  /// Of a row's magnitudes the largest that is finite, as other rows may have the same scale.
  __device__ __forceinline__ void leave_out_infinity(PerPass& largest) const {
    float of_lane = largest[0];
#pragma unroll
    for (int pass = 1; pass < Layout::kPasses; ++pass) of_lane = fmaxf(of_lane, largest[pass]);
    if (!__any_sync(kAllLanes, of_lane == kInfinity)) return;
#pragma unroll 1
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
      float found = 0.0f;
#pragma unroll 1
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        rows_.read_again(x, pass, step);
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          found = fabsf(x[e]) < kInfinity ? fmaxf(found, fabsf(x[e])) : found;
        }
      }
#pragma unroll
      for (int n = 0; n < Layout::kPasses; ++n) {
        if (n == pass) largest[n] = found;
      }
    }
  }

  __device__ __forceinline__ static float sum_of_rows(PerPass& values) {
    return Layout::reduce_rows(values, [](float a, float b) { return a + b; });
  }

  // the second pass

  /// What makes this lane's own row unit length, or its length, to shared memory and `length_`.
  __device__ __forceinline__ void measure_lengths(PerPass& squares) {
    const int own = Layout::own_pass();
    float square = sum_of_rows(squares), factor = 1.0f, length = 0.0f;
    const bool is_in_range = square > 0x1p-90f && square < 0x1p120f;
    if (__any_sync(kAllLanes, rows_.is_real(own) && !is_in_range)) {
      measure_again(square, factor);
    }
    if (square > 0.0f) {
      length = Config::kGramMax ? sqrtf(square) / factor
                                : fminf(rsqrtf(square) * factor, 0x1.fffffep127f);
    }
    length_ = length;
    smem_.sums.length[rows_.row_of(own)] = length;
    __syncwarp();
  }

  /// Squares that leave the range of f32 are taken of scaled numbers; 0 of a row of zeros, or with
  /// a NaN or an infinity in it.
  __device__ __forceinline__ void measure_again(float& square, float& factor) const {
#pragma unroll 1
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
      float largest = 0.0f, sum = 0.0f;
#pragma unroll 1
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        rows_.read_again(x, pass, step);
#pragma unroll
        for (int e = 0; e < 8; ++e) largest = fmaxf(largest, fabsf(x[e]));
      }
      largest = Layout::row_max(largest);
      const float scale = largest < 0x1p-40f ? 0x1p96f : largest > 0x1p40f ? 0x1p-96f : 1.0f;
#pragma unroll 1
      for (int step = 0; step < Layout::kSteps; ++step) {
        float x[8];
        rows_.read_again(x, pass, step);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum = fmaf(x[e] * scale, x[e] * scale, sum);
      }
      sum = Layout::row_sum(sum);
      if (pass != Layout::own_pass()) continue;
      square = largest > 0.0f && sum < kInfinity ? sum : 0.0f;
      factor = scale;
    }
  }

  __device__ __forceinline__ void weigh_rows() {
    using R = typename Sums::template Run<Config::kSimilarityTile>;
#pragma unroll
    for (int first = 0; first < Layout::kPasses; first += R::kPasses) {
      Columns sums = {};
#pragma unroll
      for (int pass = first; pass < first + R::kPasses; ++pass) {
        const float length = Config::kGramMax ? 1.0f : Layout::of_pass(length_, pass);
#pragma unroll
        for (int step = 0; step < Layout::kSteps; ++step) {
          float x[8];
          rows_.chunk(x, pass, step);
#pragma unroll
          for (int e = 0; e < 8; ++e) sums[step][e] = fmaf(x[e], length, sums[step][e]);
        }
      }
      sums_.put_similarity(rows_, sums, first);
    }
  }

  // biases: of q . k_mean of its KV head, q not smoothed; of k . q_mean of each head that reads it

  __device__ __forceinline__ void write_bias(float* biases, long long head, PerPass& dots) const {
    const int own = Layout::own_pass();
    const float dot = sum_of_rows(dots);
    if (!rows_.is_in_block(own)) return;
    biases[head * rows_.side().padded + rows_.first() + rows_.row_of(own)] =
        rows_.is_real(own) ? dot : 0.0f;
  }

  __device__ __forceinline__ void write_key_biases() {
    const int copies = args_.attend.heads_per_kv;
    for (int copy = 0; copy < copies; ++copy) {
      rows_.forget();
      const long long head = static_cast<long long>(rows_.head()) * copies + copy;
      Columns onto;
      Rows::load_columns(onto, rows_.side().onto, head);
      PerPass dots;
#pragma unroll
      for (int pass = 0; pass < Layout::kPasses; ++pass) {
        dots[pass] = 0.0f;
#pragma unroll
        for (int step = 0; step < Layout::kSteps; ++step) {
          float x[8];
          rows_.chunk(x, pass, step);
#pragma unroll
          for (int e = 0; e < 8; ++e) dots[pass] = fmaf(x[e], onto[step][e], dots[pass]);
        }
      }
      write_bias(rows_.side().bias, head, dots);
    }
  }

  const Args& args_;
  Rows rows_;
  Smem& smem_;
  Sums sums_;
  Integers integers_;
  float length_;  ///< of this lane's own row, as in smem_.length
};

/// The same where summaries stay. The grid may have fewer blocks than there are tokens for.
template <class Config, class Args>
__device__ __forceinline__ void prepare_kept(const Args& args, unsigned char* smem) {
  using Sums = PrepareSums<Config, Args, true>;
  const int heads = args.attend.n_h / args.attend.heads_per_kv;
  const int blocks = args.predict.k_padded / Config::kTokens;
  int known = 0, known_b = -1;
  for (int number = block_index(); number < args.attend.n_b * heads * blocks;
       number += static_cast<int>(gridDim.x)) {
    const int head = number / blocks, b = head / heads;
    if (b != known_b) known = Sums::known_tokens(args, b);
    known_b = b;
    if (Sums::is_idle(args, number - head * blocks, known)) continue;
    PrepareBlock<Config, Args, true>(args, smem, number).run(known);
    __syncthreads();
  }
}

/// Config: kIsQuery; kTokens; kSmooth, kSmoothSummary; kSummaryTile, kSimilarityTile (0: none),
/// kGramMax; kBits (0, 8), kGroup, kTile; kEstimateBits (0, 4, 8), kEstimateGroup, kEstimateTile;
/// kBias.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void prepare_tokens(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  if constexpr (keeps_summaries<Config>()) {
    if (summaries_stay<Config>(args)) return prepare_kept<Config>(args, block_smem);
  }
  PrepareBlock<Config, Args>(args, block_smem, block_index()).run(0);
}

}  // namespace lacuna
