// `estimate` whose scores the spec gives, then `select`: a block takes a work tile, evaluates the
// formula for each of its tiles that is seen, normalises the scores and decides.
#pragma once

#include "base/kinds.cuh"
#include "select/keep/decide_row.cuh"
#include "select/keep/normalise_row.cuh"
#include "shared/select_block.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class GivenBlock {
  static constexpr bool kIsRowMax = Config::kNormalise == Normalise::kRowMax;
  static constexpr bool kIsNormal = Config::kNormalise == Normalise::kSoftmax || kIsRowMax;
  static_assert(kIsNormal || Config::kNormalise == Normalise::kNone,
                "given scores have no log-sum-exp of tokens");

  /// Numbers of each tile: score; p; the order of the row, and room to find it.
  static constexpr int kPlanes = row_planes(Config::kOrdersTiles);
  struct Shared {
    OrderScratch<Config::kThreads / 32> order;
    SelectScratch select;
    float planes[1];  ///< to the end
  };
  static constexpr int kPlaneFloats = (Config::kSmemBytes - static_cast<int>(sizeof(Shared))) / 4;
  static_assert(kPlaneFloats > 0);

 public:
  __device__ __forceinline__ GivenBlock(const Args& args, unsigned char* smem)
      : args_(args), shared_(*reinterpret_cast<Shared*>(smem)), tiles_(args.predict.keep_k_tiles) {
    const bool fits = kPlanes * static_cast<long long>(tiles_) <= kPlaneFloats;
    planes_ = fits ? shared_.planes
                   : args.predict.scores + static_cast<long long>(block_index()) * kPlanes * tiles_;
  }

  __device__ __forceinline__ void run() {
    const int rows = args_.attend.n_b * args_.attend.n_h * args_.predict.keep_q_tiles;
    for (int number = block_index(); number < rows; number += kMostBlocks) {
      decide(locate_keep_row<Config>(args_, number));
      __syncthreads();
    }
  }

 private:
  __device__ __forceinline__ void decide(const KeepRow& row) const {
    float* const score = planes_;
    float* const p = planes_ + tiles_;
#pragma unroll 1
    for (int j = thread_index(); j < tiles_; j += Config::kThreads) {
      const bool counts =
          sees_tile<Config, Hooks>(args_, row, j) && !excludes_tile<Config, Hooks>(args_, row, j);
      score[j] = counts ? Config::kTemperature *
                              Hooks::score_of(args_, row.i, j, row.q0, row.q1, j * Config::kTileK,
                                              last_key<Config>(args_, j), row.h, row.b)
                        : -kInfinity;
      p[j] = score[j];
    }
    __syncthreads();
    if constexpr (kIsNormal)
      normalise_row<Config::kThreads, kIsRowMax>(score, score, p, tiles_, shared_.select.reduce);
    int* const order = reinterpret_cast<int*>(planes_ + 2 * static_cast<long long>(tiles_));
    decide_row<Config, Hooks>(args_, row, p, score, order, shared_.order, shared_.select);
  }

  const Args& args_;
  Shared& shared_;
  const int tiles_;
  float* planes_;
};

template <class Config, class Hooks, class Args>
__device__ __forceinline__ void predict_given(const Args& args) {
  extern __shared__ __align__(1024) unsigned char block_smem[];
  GivenBlock<Config, Hooks, Args>(args, block_smem).run();
}

}  // namespace lacuna
