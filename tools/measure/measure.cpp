#include "tools/measure/measure.hpp"

#include <algorithm>
#include <chrono>

namespace lacuna::tools {

void repeat_for(double seconds, const std::function<void(std::size_t run)>& body,
                const std::function<void(double share)>& done) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kLeastRuns = 3, kMostRuns = 200;
  const auto begin = Clock::now();
  for (std::size_t run = 0; run < kMostRuns; ++run) {
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    if (run >= kLeastRuns && elapsed.count() > seconds) break;
    const double runs = static_cast<double>(run) / static_cast<double>(kMostRuns);
    if (done) done(std::max(runs, seconds > 0 ? elapsed.count() / seconds : 0));
    body(run);
  }
}

}  // namespace lacuna::tools
