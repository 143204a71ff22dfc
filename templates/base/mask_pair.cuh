// The mask of a spec on one pair of tokens, in two steps where it divides: reciprocals and
// parameters that no token changes are prepared once for all pairs of a head (Hooks::mask_parts,
// which only such masks have).
#pragma once

#include "base/optional_field.cuh"

namespace lacuna {

struct NoMaskParts {};

// Of a MaskRow with conditions: is the mask one on the distance, and do bounds of a tile leave most
// tiles to them?
LACUNA_OPTIONAL_FIELD(bool, has_conditions, kHasConditions, false)
LACUNA_OPTIONAL_FIELD(bool, is_of_distance, kIsOfDistance, false)
LACUNA_OPTIONAL_FIELD(bool, cuts_most_tiles, kCutsMostTiles, false)
/// Does it take so many instructions that it is asked in a loop (attend/block_loop.cuh)?
LACUNA_OPTIONAL_FIELD(bool, mask_is_costly, kIsCostly, false)

/// Has the mask conditions besides its ranges of keys (attend/mask_bits.cuh)?
template <class Hooks>
inline constexpr bool kHasConditions = has_conditions<typename Hooks::MaskRow>();
/// Is it made of ranges (attend/key_ranges.cuh), and of nothing else?
template <class Hooks>
inline constexpr bool kMaskIsRanges = Hooks::MaskRow::kRanges > 0 && !kHasConditions<Hooks>;

// `preferred` tells the two apart: 0 is an int before it is a long.
template <class Hooks, class Args>
__device__ __forceinline__ auto prepare_mask(const Args& args, int h, int b, int /*preferred*/)
    -> decltype(Hooks::mask_parts(args, h, b)) {
  return Hooks::mask_parts(args, h, b);
}
template <class Hooks, class Args>
__device__ __forceinline__ NoMaskParts prepare_mask(const Args&, int, int, long) {
  return {};
}
template <class Hooks, class Args>
__device__ __forceinline__ auto prepare_mask(const Args& args, int h, int b) {
  return prepare_mask<Hooks>(args, h, b, 0);
}

/// The same for the two queries of a lane (pipeline/lane_rows.cuh): once where both are of one
/// head.
template <class MaskParts, bool kIsShared>
struct LaneMaskParts {
  MaskParts parts[2];
  __device__ __forceinline__ const MaskParts& of(int r) const { return parts[r]; }
};
template <class MaskParts>
struct LaneMaskParts<MaskParts, true> {
  MaskParts parts;
  __device__ __forceinline__ const MaskParts& of(int) const { return parts; }
};
template <class Hooks, class Args, class Lane>
__device__ __forceinline__ auto prepare_lane_mask(const Args& args, const Lane& lane, int b) {
  using MaskParts = decltype(prepare_mask<Hooks>(args, 0, b));
  if constexpr (Lane::kAreNeighbours) {
    return LaneMaskParts<MaskParts, true>{prepare_mask<Hooks>(args, lane.h(0), b)};
  } else {
    return LaneMaskParts<MaskParts, false>{
        {prepare_mask<Hooks>(args, lane.h(0), b), prepare_mask<Hooks>(args, lane.h(1), b)}};
  }
}

/// Does query q see key k? `parts`: what prepare_mask has made for head h of batch entry b.
template <class Hooks, class Args, class MaskParts>
__device__ __forceinline__ bool sees(const Args& args, const MaskParts& parts, int q, int k, int h,
                                     int b) {
  return Hooks::mask(args, parts, q, k, h, b);
}
template <class Hooks, class Args>
__device__ __forceinline__ bool sees(const Args& args, const NoMaskParts&, int q, int k, int h,
                                     int b) {
  return Hooks::mask(args, q, k, h, b);
}

}  // namespace lacuna
