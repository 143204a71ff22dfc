// The enumerators of spec.hpp as a spec writes them, in their order. A field may offer only the
// first of them.
#pragma once

#include <array>
#include <string_view>

namespace lacuna {

inline constexpr std::array<std::string_view, 3> kDTypeNames{"bf16", "f16", "f32"};
inline constexpr std::array<std::string_view, 2> kParamTypeNames{"f32", "i32"};
inline constexpr std::array<std::string_view, 3> kGateScopeNames{"warp", "tile", "warpgroup"};
inline constexpr std::array<std::string_view, 2> kTileOrderNames{"ascending", "descending"};
inline constexpr std::array<std::string_view, 2> kQueryPlaceNames{"registers", "shared_memory"};
inline constexpr std::array<std::string_view, 3> kLoaderNames{"cp_async", "gather", "tma"};
inline constexpr std::array<std::string_view, 3> kSkipNames{"v_load", "exp", "pv"};
inline constexpr std::array<std::string_view, 1> kMaskNames{"external"};
inline constexpr std::array<std::string_view, 2> kSideNames{"q", "k"};
inline constexpr std::array<std::string_view, 2> kHeadsNames{"own", "shared"};
inline constexpr std::array<std::string_view, 2> kReduceNames{"max", "sum"};
inline constexpr std::array<std::string_view, 2> kValuesOfNames{"own", "k"};
inline constexpr std::array<std::string_view, 2> kLseBaseNames{"e", "2"};
inline constexpr std::array<std::string_view, 3> kWeightsNames{"softmax", "sigmoid", "none"};
inline constexpr std::array<std::string_view, 5> kNormaliseNames{"none", "softmax", "lse",
                                                                 "previous_lse", "row_max"};
inline constexpr std::array<std::string_view, 3> kQuantGroupNames{"block", "warp", "thread"};
inline constexpr std::array<std::string_view, 2> kSimilarityNames{"cosine", "gram_max"};
inline constexpr std::array<std::string_view, 5> kCalibrateNames{"none", "bisect", "grid", "halve",
                                                                 "kept_tiles"};
inline constexpr std::array<std::string_view, 6> kTokenOrderNames{
    "none", "external", "hilbert", "row_major", "column_major", "time_major"};

}  // namespace lacuna
