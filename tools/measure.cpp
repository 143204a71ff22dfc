#include "tools/measure.hpp"

#include <algorithm>
#include <chrono>

namespace lacuna::tools {

Spread spread_of(std::vector<double> times_us) {
  std::sort(times_us.begin(), times_us.end());
  const auto at = [&times_us](double share) {
    return times_us[static_cast<std::size_t>(share * static_cast<double>(times_us.size() - 1))];
  };
  return {at(0.5), at(0.1), at(0.9)};
}

void repeat_for(double seconds, const std::function<void(std::size_t run)>& body) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kLeastRuns = 3, kMostRuns = 200;
  const auto begin = Clock::now();
  const std::chrono::duration<double> budget(seconds);
  for (std::size_t run = 0; run < kMostRuns; ++run) {
    if (run >= kLeastRuns && Clock::now() - begin > budget) break;
    body(run);
  }
}

}  // namespace lacuna::tools
