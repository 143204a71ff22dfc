// How often to measure, and what to say of many times.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace lacuna::tools {

struct Spread {
  double median_us = 0, low_us = 0, high_us = 0;  ///< low, high: a tenth of the runs is beyond
};

/// Of at least one time.
Spread spread_of(std::vector<double> times_us);

/// Calls `body` with 0, 1, ... until the time is up: at least 3 and at most 200 times.
void repeat_for(double seconds, const std::function<void(std::size_t run)>& body);

}  // namespace lacuna::tools
