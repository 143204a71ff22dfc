// Stand-in for templates/arch/round.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

inline int round_half_away(float x) { return std::isnan(x) ? 0 : static_cast<int>(std::lround(x)); }

inline int round_to_nearest(float x) {
  return std::isnan(x) ? 0 : static_cast<int>(std::nearbyint(x));
}

inline u32 pack_s8(int first, int second, int third, int fourth) {
  u32 bytes = 0;
  for (const int value : {fourth, third, second, first}) {
    bytes = bytes << 8 | static_cast<unsigned char>(std::clamp(value, -128, 127));
  }
  return bytes;
}

}  // namespace lacuna
