// V -> e4m3 codes, transposed: rows of channels, tokens in the order of prepare/value_order.cuh, so
// that attend copies a tile as it is and multiplies it without shuffles.
//
// A block transposes 128 tokens of one KV head in shared memory: it reads rows of V, all at once,
// and writes rows of v_values, both in whole lines. Tokens past the end become 0 (code 0).
#pragma once

#include "arch/pack.cuh"
#include "args/predict_args.cuh"
#include "loader/stored_rows.cuh"
#include "prepare/value_order.cuh"
#include "quantise/divide.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

template <class Config, class Args>
class PrepareValuesBlock {
  using Element = typename Config::Element;
  static constexpr int kHeadDim = Config::kHeadDim;
  static constexpr int kTokens = kValueTokens;
  static constexpr int kQuads = kTokens / 4;  ///< four positions of a row are one word
  static constexpr int kChunks = kHeadDim / 8;
  /// An item is eight channels of the tokens at four neighbouring positions.
  static constexpr int kItems = kQuads * kChunks;
  static constexpr int kItemsOfThread = ceil_div(kItems, Config::kThreads);

  struct Smem {
    u32 words[kHeadDim * kQuads];
    float scale[kHeadDim], inverse[kHeadDim];
  };
  static_assert(sizeof(Smem) == prepare_values_smem_bytes(kHeadDim) &&
                sizeof(Smem) <= Config::kSmemBytes);
  static_assert(kQuads == 32, "a warp writes a row");

 public:
  __device__ __forceinline__ PrepareValuesBlock(const Args& args, unsigned char* smem)
      : args_(args), smem_(*reinterpret_cast<Smem*>(smem)) {
    const auto blocks_of_head = static_cast<unsigned>(args.predict.k_padded / kTokens);
    const auto block = static_cast<unsigned>(block_index());
    head_ = static_cast<int>(block / blocks_of_head);
    first_ = static_cast<int>(block % blocks_of_head) * kTokens;
  }

  __device__ __forceinline__ void run() {
    if (is_beyond<Config>(head_, args_.attend.n_h / args_.attend.heads_per_kv) ||
        is_beyond<Config>(first_, prepared_length(args_.attend.n_k)))
      return;
    if (first_ + kTokens <= args_.attend.n_k) {
      load<true>();
    } else {
      load<false>();
    }
    bool has_tiny = false;
#pragma unroll 1
    for (int channel = thread_index(); channel < kHeadDim; channel += Config::kThreads) {
      const Divisor divisor(args_.predict.v_scale[head_ * kHeadDim + channel]);
      smem_.scale[channel] = args_.predict.v_scale[head_ * kHeadDim + channel];
      smem_.inverse[channel] = divisor.inverse();
      has_tiny |= divisor.is_tiny();
    }
    if (__syncthreads_or(has_tiny) != 0) {
      round_all<true>();
    } else {
      round_all<false>();
    }
    __syncthreads();
    write();
  }

 private:
  /// Of an item of this thread.
  __device__ __forceinline__ static int number_of(int item) {
    return thread_index() + item * Config::kThreads;
  }
  __device__ __forceinline__ static bool exists(int item) {
    return kItems % Config::kThreads == 0 || number_of(item) < kItems;
  }

  template <bool kAllReal>
  __device__ __forceinline__ void load() {
    const int n_h_kv = args_.attend.n_h / args_.attend.heads_per_kv;
    const int b = head_ / n_h_kv;
    const int h = head_ - b * n_h_kv;
    const TensorArg& v = args_.attend.v;
    const long long stride = v.stride_n;
    constexpr bool kHasPages = attends_to_pages<Config>();
    StoredRow<Config> rows;
    if constexpr (!kHasPages)
      rows = stored_row<Config, KvTensor::kValues>(args_, v, b, h, first_, 0);
#pragma unroll
    for (int item = 0; item < kItemsOfThread; ++item) {
      const int quad = number_of(item) / kChunks, chunk = number_of(item) % kChunks;
      const StoredRow<Config> source = rows.moved(token_at_position(quad * 4) * stride + chunk * 8);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        uint4& bits = rows_[item][n];
        if (!kAllReal) bits = uint4{0, 0, 0, 0};
        const int token = token_at_position(n);  // from the first one of the quad
        const bool is_real =
            first_ + token_at_position(quad * 4) + token < args_.attend.n_k && exists(item);
        if ((kAllReal && kItems % Config::kThreads == 0) || is_real) {
          if constexpr (kHasPages) {
            const int at = first_ + token_at_position(quad * 4) + token;
            bits = stored_row<Config, KvTensor::kValues>(args_, v, b, h, at, chunk * 8).chunk();
          } else {
            bits = source.moved(token * stride).chunk();
          }
        }
      }
    }
  }

  template <bool kMayBeTiny>
  __device__ __forceinline__ void round_all() {
#pragma unroll
    for (int item = 0; item < kItemsOfThread; ++item) {
      if (!exists(item)) continue;
      const int quad = number_of(item) / kChunks, chunk = number_of(item) % kChunks;
      float scales[8], inverses[8], values[4][8];
      load_floats(scales, smem_.scale + chunk * 8);
      load_floats(inverses, smem_.inverse + chunk * 8);
#pragma unroll
      for (int n = 0; n < 4; ++n) unpack_chunk<Element>(values[n], rows_[item][n]);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const Divisor divisor = kMayBeTiny ? Divisor(scales[e]) : Divisor(scales[e], inverses[e]);
        const auto divide = [&](int n) {
          return divisor.template divide<kMayBeTiny>(values[n][e]);
        };
        smem_.words[word(chunk * 8 + e, quad)] =
            pack_e4m3x4(divide(0), divide(1), divide(2), divide(3));
      }
    }
  }

  /// A warp writes the words of one channel after the other.
  __device__ __forceinline__ void write() const {
    constexpr int kWarps = Config::kThreads / 32;
    const long long padded = args_.predict.k_padded;
    unsigned char* const rows = args_.predict.v_values + head_ * kHeadDim * padded + first_;
#pragma unroll
    for (int n = 0; n < ceil_div(kHeadDim, kWarps); ++n) {
      const int channel = warp_index() + n * kWarps;
      if (kHeadDim % kWarps != 0 && channel >= kHeadDim) break;
      *reinterpret_cast<u32*>(rows + channel * padded + lane_index() * 4) =
          smem_.words[word(channel, lane_index())];
    }
  }

  /// Where four codes of a channel lie. The lanes of a warp write a few neighbouring quads of every
  /// eighth channel, and read all quads of one: neither meet in a bank.
  __device__ __forceinline__ static int word(int channel, int quad) {
    constexpr int kQuadsOfWarp = kChunks >= 32 ? 1 : 32 / kChunks;
    return channel * kQuads + (quad ^ channel / 8 * kQuadsOfWarp % kQuads);
  }

  const Args& args_;
  Smem& smem_;
  int head_;   ///< in [n_b, n_h_kv]
  int first_;  ///< token
  uint4 rows_[kItemsOfThread][4];
};

/// The body of a generated entry; grid: n_b * n_h_kv * k_padded / 128 blocks. Reads v and
/// predict.v_scale (statistics.cuh), writes predict.v_values.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void prepare_values(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  PrepareValuesBlock<Config, Args>(args, block_smem).run();
}

}  // namespace lacuna
