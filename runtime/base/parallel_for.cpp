#include "runtime/base/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/first_exception.hpp"

namespace lacuna {

std::size_t worker_count(std::int32_t threads, std::int64_t items) {
  const std::int64_t wanted = threads > 0 ? threads : std::thread::hardware_concurrency();
  return static_cast<std::size_t>(std::max<std::int64_t>(1, std::min(wanted, items)));
}

void parallel_for(std::size_t workers, std::int64_t items,
                  const std::function<void(std::int64_t, std::size_t)>& work) {
  std::atomic<std::int64_t> next{0};
  FirstException thrown;
  const auto take_items = [&](std::size_t worker) noexcept {
    try {
      for (std::int64_t item = next++; item < items; item = next++) work(item, worker);
    } catch (...) {
      thrown.keep();
      next = items;
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t t = 1; t < workers; ++t) threads.emplace_back(take_items, t);
    } catch (const std::system_error&) {
      // No more threads to be had: those that run, and this one, do the work.
    }
    take_items(0);
  }
  thrown.rethrow();
}

}  // namespace lacuna
