// Constants of scalar math in the log2 domain.
#pragma once

namespace lacuna {

inline constexpr float kLog2E = 1.44269504088896340736f;
inline constexpr float kLn2 = 0.69314718055994530942f;
inline constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000);

}  // namespace lacuna
