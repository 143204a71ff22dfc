// The copies of predict_token_softmax, which all threads of a block share: the queries of a row,
// and for each step 64 keys and what is added to their products. Rows of integers are contiguous,
// so a thread's chunks of 16 bytes are so many rows apart, in memory and in shared memory alike.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "select/token_softmax/token_softmax_shape.cuh"

namespace lacuna {

template <class Config>
class TokenSoftmaxCopies {
  using Shape = TokenSoftmaxShape<Config>;
  using KeyTile = typename Shape::KeyTile;
  static constexpr int kPassBytes = Shape::kThreads * 16;
  static_assert(Shape::kThreads / KeyTile::kChunks % 8 == 0, "chunks are permuted alike");
  static_assert(KeyTile::kBytes % kPassBytes == 0 && Shape::QueryTile::kBytes % kPassBytes == 0);

 public:
  template <class Args>
  __device__ __forceinline__ TokenSoftmaxCopies(const Args& args, const KeepRow& row,
                                                unsigned char* smem) {
    const PredictArgs& predict = args.predict;
    const long long keys = key_head(args, row.b, row.h) * predict.k_padded;
    source_ = predict.estimate_k_values + keys * Config::kHeadDim + thread_index() * 16;
    target_ = shared_address(smem) + static_cast<u32>(Shape::kKeyOffset) + chunk_offset();
    if constexpr (Config::kHasColumnBias) {
      const auto& control =
          *reinterpret_cast<const typename Shape::Control*>(smem + Shape::kControlOffset);
      const int first = thread_index() % (Shape::kStepKeys / 4) * 4;
      bias_source_ =
          predict.column_bias + query_head(args, row.b, row.h) * predict.k_padded + first;
      bias_target_ = shared_address(&control.bias[0][first]);
    }
  }

  /// The queries of the row that the constructor was given.
  template <class Args>
  __device__ __forceinline__ static void load_queries(const Args& args, const KeepRow& row,
                                                      unsigned char* smem) {
    const PredictArgs& predict = args.predict;
    const long long first = query_head(args, row.b, row.h) * predict.q_padded + row.q0;
    copy<Shape::QueryTile::kBytes>(
        shared_address(smem) + chunk_offset(),
        predict.estimate_q_values + first * Config::kHeadDim + thread_index() * 16);
  }

  /// The step that begins at `key`.
  __device__ __forceinline__ void load(int key, int slot) const {
    copy<KeyTile::kBytes>(target_ + static_cast<u32>(slot * KeyTile::kBytes),
                          source_ + static_cast<long long>(key) * Config::kHeadDim);
    if constexpr (Config::kHasColumnBias) {
      if (thread_index() < Shape::kStepKeys / 4)
        cp_async_16(bias_target_ + static_cast<u32>(slot * Shape::kStepKeys * 4),
                    bias_source_ + key, true);
    }
  }

 private:
  /// Of a thread's first chunk in a tile.
  __device__ __forceinline__ static u32 chunk_offset() {
    return KeyTile::offset(thread_index() / KeyTile::kChunks, thread_index() % KeyTile::kChunks);
  }

  template <int kBytes>
  __device__ __forceinline__ static void copy(u32 target, const signed char* source) {
#pragma unroll
    for (int pass = 0; pass < kBytes; pass += kPassBytes)
      cp_async_16(target + static_cast<u32>(pass), source + pass, true);
  }

  const signed char* source_;  ///< the thread's first chunk of the head's first step
  u32 target_;                 ///< where it goes in slot 0
  const float* bias_source_ = nullptr;
  u32 bias_target_ = 0;
};

}  // namespace lacuna
