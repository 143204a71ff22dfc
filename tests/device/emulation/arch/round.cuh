// Stand-in for templates/arch/round.cuh.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

/// NaN becomes 0; saturates.
inline int to_int(float x) {
  constexpr float kBeyond = 0x1p31F;
  if (std::isnan(x)) return 0;
  if (x >= kBeyond) return std::numeric_limits<int>::max();
  return x < -kBeyond ? std::numeric_limits<int>::min() : static_cast<int>(x);
}

inline int round_half_away(float x) { return to_int(std::round(x)); }

inline int round_to_nearest(float x) { return to_int(std::nearbyint(x)); }

inline u32 pack_s8(int first, int second, int third, int fourth) {
  u32 bytes = 0;
  for (const int value : {fourth, third, second, first}) {
    bytes = bytes << 8 | static_cast<unsigned char>(max(-128, min(value, 127)));
  }
  return bytes;
}

}  // namespace lacuna
