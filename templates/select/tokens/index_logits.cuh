// The logits of an index: vectors of their own in the place of q and k, which hooks give element
// by element, or of keys four at a time. A chunk's keys are rounded to 16 bits on their way to
// shared memory; a warp rounds the vectors of its queries on their way to registers, one index head
// after another, and adds what is positive of each head's products, weighted.
#pragma once

#include "arch/pack.cuh"
#include "select/tokens/index_keys.cuh"
#include "select/tokens/token_logits.cuh"

namespace lacuna {

template <class Shape, class Config, class Hooks, class Args>
class IndexLogits {
  using Element = typename Config::Element;
  using KeyTile = typename Shape::template KeyTile<16>;
  static_assert(Shape::kCell == 1 && Shape::kCellK == 1, "an index compares tokens");

 public:
  using Sums = float[Shape::kBlocks][4];

  __device__ __forceinline__ IndexLogits(const Args& args, const KeepRow& row)
      : args_(args), row_(row), tokens_(args, row) {}

  // Which pairs count is a question of tokens, not of what is compared.
  __device__ __forceinline__ int first_possible(int first) const {
    return tokens_.first_possible(first);
  }
  __device__ __forceinline__ bool is_partial(int first) const { return tokens_.is_partial(first); }
  __device__ __forceinline__ void hide(float (&scores)[Shape::kBlocks][4], int set, int column,
                                       const int* excluded, int offset) const {
    tokens_.hide(scores, set, column, excluded, offset);
  }

  /// Queries go from the hooks to registers.
  __device__ __forceinline__ void load_queries(u32) const {}

  /// By all threads, before the barrier that ends a load; keys past the end are zeros.
  __device__ __forceinline__ void load_keys(unsigned char* tile, int first) const {
    with_index_keys<Hooks>(args_, row_.b,
                           [&](const auto& quad_of) { load_keys(tile, first, quad_of); });
  }

  /// Weighted products of a set of 16 rows with a split of the chunk's columns.
  __device__ __forceinline__ void add(Sums& sums, u32, u32 keys, int set, int split) const {
    const int l = lane_index();
    const LaneAddress<KeyTile> column(
        keys + static_cast<u32>(split * Shape::kSplitColumns * KeyTile::kRowBytes),
        l % 8 + l / 16 * 8, l / 8 % 2);
    const int q[2] = {query_of(set, 0), query_of(set, 1)};
#pragma unroll 1
    for (int head = 0; head < Config::kIndexHeads; ++head) {
      Sums products;
      clear(products);
#pragma unroll 2
      for (int step = 0; step < Config::kIndexDim / 16; ++step) {
        const int d = step * 16 + l % 4 * 2;
        const u32 a[4] = {query_pair(head, q[0], d), query_pair(head, q[1], d),
                          query_pair(head, q[0], d + 8), query_pair(head, q[1], d + 8)};
#pragma unroll
        for (int n = 0; n < Shape::kBlocks / 2; ++n) {
          u32 b[4];
          ldmatrix_x4(b, column.at(n, step));
          multiply_add<Element>(products[2 * n], a, b[0], b[1]);
          multiply_add<Element>(products[2 * n + 1], a, b[2], b[3]);
        }
      }
      const float weight[2] = {Hooks::index_weight(args_, head, q[0], row_.h, row_.b),
                               Hooks::index_weight(args_, head, q[1], row_.h, row_.b)};
#pragma unroll
      for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[n][i] = fmaf(weight[i / 2], positive_part(products[n][i]), sums[n][i]);
      }
    }
  }

  __device__ __forceinline__ void scale(float (&scores)[Shape::kBlocks][4], const Sums& sums, int,
                                        int) const {
#pragma unroll
    for (int n = 0; n < Shape::kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = sums[n][i] * Config::kTemperature;
    }
  }

 private:
  template <class QuadOf>
  __device__ __forceinline__ void load_keys(unsigned char* tile, int first,
                                            const QuadOf& quad_of) const {
    constexpr int kChunks = KeyTile::kChunks;
#pragma unroll 1
    for (int n = thread_index(); n < Shape::kColumns * kChunks; n += Config::kThreads) {
      const int column = n / kChunks, chunk = n % kChunks, k = first + column;
      uint4 packed = {0, 0, 0, 0};
      if (k < args_.attend.n_k) {
        const float4 low = quad_of(k, chunk * 8), high = quad_of(k, chunk * 8 + 4);
        packed = {pack<Element>(low.x, low.y), pack<Element>(low.z, low.w),
                  pack<Element>(high.x, high.y), pack<Element>(high.z, high.w)};
      }
      *reinterpret_cast<uint4*>(tile + KeyTile::offset(column, chunk)) = packed;
    }
  }

  /// The larger of x and 0; NaN stays NaN.
  __device__ __forceinline__ static float positive_part(float x) { return x < 0.0f ? 0.0f : x; }

  /// The token of this lane's row in each half of a set; rows past the end stand for the last.
  __device__ __forceinline__ int query_of(int set, int half) const {
    const int row = tokens_.first_row() + set * 16 + lane_index() / 4 + 8 * half;
    return smaller(row * Shape::kRowStride, args_.attend.n_q - 1);
  }

  __device__ __forceinline__ u32 query_pair(int head, int q, int d) const {
    return pack<Element>(Hooks::index_q(args_, head, q, d, row_.h, row_.b),
                         Hooks::index_q(args_, head, q, d + 1, row_.h, row_.b));
  }

  const Args& args_;
  const KeepRow& row_;
  const TokenLogits<Shape, Config, Hooks, Args, 16, false> tokens_;
};

}  // namespace lacuna
