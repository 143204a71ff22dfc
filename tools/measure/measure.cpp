#include "tools/measure/measure.hpp"

#include <chrono>

namespace lacuna::tools {

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
