// Head dimensions of a program: every multiple of a step up to a limit. GPUs have fewer
// (passes/check_head_dim.cpp).
#pragma once

namespace lacuna {

inline constexpr int kHeadDimStep = 8, kLargestHeadDim = 512;

}  // namespace lacuna
