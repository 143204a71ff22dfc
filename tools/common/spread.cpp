#include "tools/common/spread.hpp"

#include <algorithm>

namespace lacuna::tools {

Spread spread_of(std::vector<double> times_us) {
  std::sort(times_us.begin(), times_us.end());
  const std::size_t last = times_us.size() - 1;
  const auto at = [&](double share) {
    return times_us[static_cast<std::size_t>(share * static_cast<double>(last))];
  };
  return {(times_us[last / 2] + times_us[(last + 1) / 2]) / 2, at(0.1), at(0.9)};
}

}  // namespace lacuna::tools
