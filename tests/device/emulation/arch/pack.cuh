// Stand-in for templates/arch/pack.cuh.
#pragma once

#include "arch/format.cuh"

namespace lacuna {

template <class Element>
inline u32 pack(float low, float high) {
  const u32 low_bits = ::emulation::round_to(kFormat<Element>, low);
  const u32 high_bits = ::emulation::round_to(kFormat<Element>, high);
  return low_bits | high_bits << 16;
}

template <class Element>
inline float unpack_low(u32 pair) {
  return ::emulation::to_float(kFormat<Element>, static_cast<unsigned short>(pair));
}
template <class Element>
inline float unpack_high(u32 pair) {
  return ::emulation::to_float(kFormat<Element>, static_cast<unsigned short>(pair >> 16));
}

template <class Element>
inline u32 larger_magnitudes(u32 magnitudes, u32 pair) {
  return pack<Element>(
      std::fmax(unpack_low<Element>(magnitudes), std::fabs(unpack_low<Element>(pair))),
      std::fmax(unpack_high<Element>(magnitudes), std::fabs(unpack_high<Element>(pair))));
}

template <class Element, class Choose>
inline u32 choose_pair(u32 a, u32 b, Choose choose) {
  const auto one = [&](float x, float y) { return x != x ? x : y != y ? y : choose(x, y); };
  return pack<Element>(one(unpack_low<Element>(a), unpack_low<Element>(b)),
                       one(unpack_high<Element>(a), unpack_high<Element>(b)));
}
template <class Element>
inline u32 smaller_pair(u32 a, u32 b) {
  return choose_pair<Element>(a, b, [](float x, float y) { return std::fmin(x, y); });
}
template <class Element>
inline u32 larger_pair(u32 a, u32 b) {
  return choose_pair<Element>(a, b, [](float x, float y) { return std::fmax(x, y); });
}

inline u32 unpack_e4m3x2(u32 codes) {
  return pack<f16>(::emulation::e4m3_to_float(static_cast<unsigned char>(codes)),
                   ::emulation::e4m3_to_float(static_cast<unsigned char>(codes >> 8)));
}
inline u32 pack_e4m3x2(float low, float high) {
  const u32 high_bits = ::emulation::round_to_e4m3(high);
  return ::emulation::round_to_e4m3(low) | high_bits << 8;
}
inline u32 pack_e4m3x4(float first, float second, float third, float fourth) {
  return pack_e4m3x2(first, second) | pack_e4m3x2(third, fourth) << 16;
}

}  // namespace lacuna
