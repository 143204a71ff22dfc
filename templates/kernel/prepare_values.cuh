// V -> e4m3 codes, transposed: rows of channels, tokens in the order of kernel/value_order.cuh, so
// that attend copies a tile as it is and multiplies it without shuffles.
//
// A block turns 64 tokens of one KV head through shared memory: it reads rows of V and writes rows
// of v_values, both in whole sectors. Tokens past the end become 0 (code 0).
#pragma once

#include "arch/pack.cuh"
#include "kernel/predict_args.cuh"
#include "kernel/value_order.cuh"
#include "loader/token_rows.cuh"
#include "quantise/divide.cuh"

namespace lacuna {

template <class Config, class Args>
class PrepareValuesBlock {
  using Element = typename Config::Element;
  static constexpr int kTokens = 64;
  static constexpr int kQuads = kTokens / 4;  ///< four positions of a row are one word
  static constexpr int kChunks = Config::kHeadDim / 8;
  static_assert(Config::kHeadDim * kTokens <= Config::kSmemBytes);
  static_assert(kQuads == 16, "words of a row permute among themselves");

 public:
  __device__ __forceinline__ PrepareValuesBlock(const Args& args, unsigned char* smem)
      : args_(args), words_(reinterpret_cast<u32*>(smem)) {
    const int blocks_of_head = args.predict.k_padded / kTokens;
    head_ = block_index() / blocks_of_head;
    first_ = (block_index() - head_ * blocks_of_head) * kTokens;
  }

  __device__ __forceinline__ void run() const {
    for (int item = thread_index(); item < kQuads * kChunks; item += Config::kThreads) {
      round(item / kChunks, item % kChunks);
    }
    __syncthreads();
    unsigned char* rows =
        args_.predict.v_values +
        static_cast<long long>(head_) * Config::kHeadDim * args_.predict.k_padded + first_;
    for (int n = thread_index(); n < Config::kHeadDim * kQuads; n += Config::kThreads) {
      const int channel = n / kQuads, quad = n % kQuads;
      unsigned char* row = rows + static_cast<long long>(channel) * args_.predict.k_padded;
      *reinterpret_cast<u32*>(row + quad * 4) = words_[word(channel, quad)];
    }
  }

 private:
  /// Eight channels of the tokens at four neighbouring positions.
  __device__ __forceinline__ void round(int quad, int chunk) const {
    float scales[8];
    load_floats(scales, args_.predict.v_scale + head_ * Config::kHeadDim + chunk * 8);
    float values[4][8];
#pragma unroll
    for (int n = 0; n < 4; ++n) read(values[n], token_at_position(quad * 4 + n), chunk);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const Divisor divisor(scales[e]);
      words_[word(chunk * 8 + e, quad)] =
          pack_e4m3x4(divisor.divide(values[0][e]), divisor.divide(values[1][e]),
                      divisor.divide(values[2][e]), divisor.divide(values[3][e]));
    }
  }

  __device__ __forceinline__ void read(float (&values)[8], int token, int chunk) const {
    uint4 bits = {0, 0, 0, 0};
    if (first_ + token < args_.attend.n_k) {
      const int n_h_kv = args_.attend.n_h / args_.attend.heads_per_kv;
      bits = *reinterpret_cast<const uint4*>(element_of<Element>(
          args_.attend.v, head_ / n_h_kv, head_ % n_h_kv, first_ + token, chunk * 8));
    }
    unpack_chunk<Element>(values, bits);
  }

  /// Where four codes of a channel lie. Neighbouring lanes write the same quad of every eighth
  /// channel and read neighbouring quads of one: neither meets in a bank.
  __device__ __forceinline__ static int word(int channel, int quad) {
    return channel * kQuads + (quad ^ (channel / 8 % kQuads));
  }

  const Args& args_;
  u32* const words_;
  int head_;   ///< in [n_b, n_h_kv]
  int first_;  ///< token
};

/// The body of a generated entry; grid: n_b * n_h_kv * k_padded / 64 blocks. Reads v and
/// predict.v_scale (statistics.cuh), writes predict.v_values.
template <class Config, class Hooks, class Args>
__device__ __forceinline__ void prepare_values(const Args& args) {
  extern __shared__ __align__(128) unsigned char block_smem[];
  PrepareValuesBlock<Config, Args>(args, block_smem).run();
}

}  // namespace lacuna
