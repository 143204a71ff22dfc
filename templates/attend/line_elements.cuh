// Elements of a table that lie on a line along the keys of a row
// (compiler/expr/parts/table_line.hpp). They are read from one address of each row at constant
// distances, two of neighbouring keys together where they lie next to each other.
#pragma once

#include "args/expr.cuh"
#include "base/ints.cuh"

namespace lacuna {

/// Those of a lane's scores with kBlocks blocks of 8 keys, of element kNumber of a formula.
template <class Hooks, int kNumber, int kBlocks>
class LineElements {
  static constexpr int kAlongK = Hooks::ScoreRow::kElementAlongK[kNumber];

 public:
  static constexpr bool kHasPairs = kAlongK == 1;

  /// k: the lane's first key.
  template <class Args, class Lane>
  __device__ __forceinline__ LineElements(const Args& args, const Lane& lane, int k, int b) {
    is_inside_ = true;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const TableLine line =
          Hooks::element_line(Constant<kNumber>{}, args, lane.q(r), k, lane.h(r), b);
      first_[r] = line.first + line.index;
      is_inside_ = is_inside_ && stays_inside(line);
    }
  }

  /// Do all of them lie in the table, one next to the other?
  __device__ __forceinline__ bool are_inside() const { return is_inside_; }
  /// Can those of two keys be read at once?
  __device__ __forceinline__ bool are_paired() const {
    const auto places = reinterpret_cast<unsigned long long>(first_[0]) |
                        reinterpret_cast<unsigned long long>(first_[1]);
    return !kHasPairs || places % sizeof(float2) == 0;
  }

  template <bool kArePaired>
  __device__ __forceinline__ void read(float (&block)[4], int n) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float* const place = first_[r] + n * 8 * kAlongK;
      if constexpr (kArePaired && kHasPairs) {
        const float2 pair = *reinterpret_cast<const float2*>(place);
        block[2 * r] = pair.x;
        block[2 * r + 1] = pair.y;
      } else {
        block[2 * r] = place[0];
        block[2 * r + 1] = place[kAlongK];
      }
    }
  }

 private:
  __device__ __forceinline__ static bool stays_inside(const TableLine& line) {
    constexpr int kLast = (8 * kBlocks - 7) * kAlongK;
    return line.is_dense && line.index + smaller(kLast, 0) >= 0 &&
           line.index + larger(kLast, 0) < line.extent;
  }

  const float* first_[2];
  bool is_inside_;
};

}  // namespace lacuna
