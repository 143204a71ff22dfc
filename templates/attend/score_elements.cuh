// Elements of tables that the rest of a score formula reads, whose places follow from those of the
// row and of the key (compiler/expr/parts/element_parts.hpp). Where one of them may lie outside of
// its table, or its table is laid out in another way, each index is worked out for each score and
// clamped (Hooks::element).
#pragma once

#include "attend/line_elements.cuh"
#include "attend/placed_elements.cuh"

namespace lacuna {

/// How element kNumber is read.
template <class Hooks, int kNumber, int kBlocks,
          bool kIsLine = (Hooks::ScoreRow::kElementAlongK[kNumber] != 0)>
struct ElementsOf {
  using Type = LineElements<Hooks, kNumber, kBlocks>;
};
template <class Hooks, int kNumber, int kBlocks>
struct ElementsOf<Hooks, kNumber, kBlocks, false> {
  using Type = PlacedElements<Hooks, kNumber, kBlocks>;
};

/// Those of a lane's scores with kBlocks blocks of 8 keys: of element kNumber and those behind it.
/// The lane's rows are neighbours.
template <class Hooks, int kBlocks, int kNumber = 0,
          bool kExist = (kNumber < Hooks::ScoreRow::kElements)>
class ScoreElements {
 public:
  template <class Args, class Lane>
  __device__ __forceinline__ ScoreElements(const Args&, const Lane&, int, int) {}
  __device__ __forceinline__ bool are_inside() const { return true; }
  __device__ __forceinline__ bool are_paired() const { return true; }
  template <bool kArePaired, int kCount>
  __device__ __forceinline__ void read(float (&)[kCount][4], int) const {}
};

template <class Hooks, int kBlocks, int kNumber>
class ScoreElements<Hooks, kBlocks, kNumber, true> {
 public:
  /// k: the lane's first key.
  template <class Args, class Lane>
  __device__ __forceinline__ ScoreElements(const Args& args, const Lane& lane, int k, int b)
      : element_(args, lane, k, b), others_(args, lane, k, b) {}

  /// Do they lie where they can be read without their indices?
  __device__ __forceinline__ bool are_inside() const {
    return element_.are_inside() && others_.are_inside();
  }
  /// Can elements of lines be read for two keys at once?
  __device__ __forceinline__ bool are_paired() const {
    return element_.are_paired() && others_.are_paired();
  }
  /// Of block n: blocks[number] of each element, if they are inside.
  template <bool kArePaired, int kCount>
  __device__ __forceinline__ void read(float (&blocks)[kCount][4], int n) const {
    element_.template read<kArePaired>(blocks[kNumber], n);
    others_.template read<kArePaired>(blocks, n);
  }

 private:
  typename ElementsOf<Hooks, kNumber, kBlocks>::Type element_;
  ScoreElements<Hooks, kBlocks, kNumber + 1> others_;
};

}  // namespace lacuna
