// Head dimensions of a program: every multiple of a step up to a limit. GPUs have fewer
// (passes/check_head_dim.cpp).
#pragma once

namespace lacuna {

inline constexpr int kHeadDimStep = 8, kLargestHeadDim = 576;

constexpr bool is_head_dim(int d) { return d % kHeadDimStep == 0 && d > 0 && d <= kLargestHeadDim; }

}  // namespace lacuna
