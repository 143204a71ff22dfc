// The reports of AttendArgs.
#pragma once

namespace lacuna {

inline constexpr int kCountsOfRow = 3;  ///< visible, visited, gated

}  // namespace lacuna
