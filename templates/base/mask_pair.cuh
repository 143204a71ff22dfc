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
