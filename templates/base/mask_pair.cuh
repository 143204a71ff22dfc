// The mask of a spec on one pair of tokens, in two steps where it divides: a reciprocal is prepared
// once for all pairs of a head (Hooks::mask_divisors, which only such masks have).
#pragma once

namespace lacuna {

struct NoDivisors {};

// `preferred` tells the two apart: 0 is an int before it is a long.
template <class Hooks, class Args>
__device__ __forceinline__ auto prepare_mask(const Args& args, int h, int b, int /*preferred*/)
    -> decltype(Hooks::mask_divisors(args, h, b)) {
  return Hooks::mask_divisors(args, h, b);
}
template <class Hooks, class Args>
__device__ __forceinline__ NoDivisors prepare_mask(const Args&, int, int, long) {
  return {};
}
template <class Hooks, class Args>
__device__ __forceinline__ auto prepare_mask(const Args& args, int h, int b) {
  return prepare_mask<Hooks>(args, h, b, 0);
}

/// The same for the two queries of a lane (pipeline/lane_rows.cuh): once where both are of one
/// head.
template <class Divisors, bool kIsShared>
struct LaneDivisors {
  Divisors divisors[2];
  __device__ __forceinline__ const Divisors& of(int r) const { return divisors[r]; }
};
template <class Divisors>
struct LaneDivisors<Divisors, true> {
  Divisors divisors;
  __device__ __forceinline__ const Divisors& of(int) const { return divisors; }
};
template <class Hooks, class Args, class Lane>
__device__ __forceinline__ auto prepare_lane_mask(const Args& args, const Lane& lane, int b) {
  using Divisors = decltype(prepare_mask<Hooks>(args, 0, b));
  if constexpr (Lane::kAreNeighbours) {
    return LaneDivisors<Divisors, true>{prepare_mask<Hooks>(args, lane.h(0), b)};
  } else {
    return LaneDivisors<Divisors, false>{
        {prepare_mask<Hooks>(args, lane.h(0), b), prepare_mask<Hooks>(args, lane.h(1), b)}};
  }
}

/// Does query q see key k? `divisors`: what prepare_mask has made for head h of batch entry b.
template <class Hooks, class Args, class Divisors>
__device__ __forceinline__ bool sees(const Args& args, const Divisors& divisors, int q, int k,
                                     int h, int b) {
  return Hooks::mask(args, divisors, q, k, h, b);
}
template <class Hooks, class Args>
__device__ __forceinline__ bool sees(const Args& args, const NoDivisors&, int q, int k, int h,
                                     int b) {
  return Hooks::mask(args, q, k, h, b);
}

}  // namespace lacuna
