// What to say of many times.
#pragma once

#include <vector>

namespace lacuna::tools {

/// Of an even number of times the median is the mean of the two in the middle.
struct Spread {
  double median_us = 0, low_us = 0, high_us = 0;  ///< low, high: a tenth of the runs is beyond
};

/// Of at least one time.
Spread spread_of(std::vector<double> times_us);

}  // namespace lacuna::tools
