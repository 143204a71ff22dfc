// Elements of tables that the rest of a score formula reads, whose places follow from those of the
// row and of the key (compiler/expr/parts/element_parts.hpp). Where one of them may lie outside of
// its table, or its table is laid out in another way, each index is worked out for each score and
// clamped (Hooks::element).
#pragma once

#include "attend/line_elements.cuh"
#include "attend/placed_elements.cuh"

namespace lacuna {

/// Of one block of a lane's scores: the elements of a formula, of which it has no more than these.
struct BlockElements {
  float at[2][4];
};

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
  static constexpr bool kHasPairs = false;
  template <class Args, class Lane>
  __device__ __forceinline__ ScoreElements(const Args&, const Lane&, int, int) {}
  __device__ __forceinline__ bool are_inside() const { return true; }
  __device__ __forceinline__ bool are_paired() const { return true; }
  template <bool kArePaired>
  __device__ __forceinline__ void read(BlockElements&, int) const {}
};

template <class Hooks, int kBlocks, int kNumber>
class ScoreElements<Hooks, kBlocks, kNumber, true> {
  using Elements = typename ElementsOf<Hooks, kNumber, kBlocks>::Type;
  using Others = ScoreElements<Hooks, kBlocks, kNumber + 1>;

 public:
  /// Does any of them lie next to that of the next key?
  static constexpr bool kHasPairs = Elements::kHasPairs || Others::kHasPairs;

  /// k: the lane's first key.
  template <class Args, class Lane>
  __device__ __forceinline__ ScoreElements(const Args& args, const Lane& lane, int k, int b)
      : element_(args, lane, k, b), others_(args, lane, k, b) {}

  /// Do they lie where they can be read without their indices?
  __device__ __forceinline__ bool are_inside() const {
    return element_.are_inside() && others_.are_inside();
  }
  /// Can such elements be read for two keys at once?
  __device__ __forceinline__ bool are_paired() const {
    return element_.are_paired() && others_.are_paired();
  }
  /// Of block n, if they are inside.
  template <bool kArePaired>
  __device__ __forceinline__ void read(BlockElements& blocks, int n) const {
    element_.template read<kArePaired>(blocks.at[kNumber], n);
    others_.template read<kArePaired>(blocks, n);
  }

 private:
  Elements element_;
  Others others_;
};

/// Element kNumber of a block from the lane's key k on, and those behind it, each by its indices.
template <class Hooks, int kNumber = 0, class Args, class Lane>
__device__ __forceinline__ void read_by_indices(BlockElements& blocks, const Args& args,
                                                const Lane& lane, int k, int b) {
  if constexpr (kNumber < Hooks::ScoreRow::kElements) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      blocks.at[kNumber][i] =
          Hooks::element(Constant<kNumber>{}, args, lane.q(i / 2), k + i % 2, lane.h(i / 2), b);
    read_by_indices<Hooks, kNumber + 1>(blocks, args, lane, k, b);
  }
}

/// Reads elements of one block after the other, in a loop; how is found out before it.
template <class Hooks, int kBlocks, class Lane,
          bool kExist = (Hooks::ScoreRow::kElements > 0 && Lane::kAreNeighbours)>
class ElementReader {
  using Elements = ScoreElements<Hooks, kBlocks>;

 public:
  /// k: the lane's first key.
  template <class Args>
  __device__ __forceinline__ ElementReader(const Args& args, const Lane& lane, int k, int b)
      : elements_(args, lane, k, b),
        are_inside_(!__any_sync(kAllLanes, !elements_.are_inside())),
        are_paired_(Elements::kHasPairs && !__any_sync(kAllLanes, !elements_.are_paired())) {}

  /// Of block n, whose first key of the lane is `key`.
  template <class Args>
  __device__ __forceinline__ void read(BlockElements& blocks, const Args& args, const Lane& lane,
                                       int key, int n, int b) const {
    if (are_inside_ && are_paired_) {
      elements_.template read<Elements::kHasPairs>(blocks, n);
    } else if (are_inside_) {
      elements_.template read<false>(blocks, n);
    } else {
      read_by_indices<Hooks>(blocks, args, lane, key, b);
    }
  }

 private:
  Elements elements_;
  bool are_inside_, are_paired_;
};
template <class Hooks, int kBlocks, class Lane>
class ElementReader<Hooks, kBlocks, Lane, false> {
 public:
  template <class Args>
  __device__ __forceinline__ ElementReader(const Args&, const Lane&, int, int) {}
  template <class Args>
  __device__ __forceinline__ void read(BlockElements& blocks, const Args& args, const Lane& lane,
                                       int key, int, int b) const {
    read_by_indices<Hooks>(blocks, args, lane, key, b);
  }
};

}  // namespace lacuna
