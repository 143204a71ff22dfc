#include "runtime/host/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace lacuna::host {

int workers_for(int threads, int items) {
  const int available =
      threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(available, items));
}

void parallel_for(int workers, int items, const std::function<void(int, int)>& work) {
  std::atomic<int> next{0};
  const auto serve = [&](int worker) {
    for (int item = next.fetch_add(1); item < items; item = next.fetch_add(1)) work(worker, item);
  };
  std::vector<std::thread> helpers;
  for (int worker = 1; worker < workers; ++worker) {
    try {
      helpers.emplace_back(serve, worker);
    } catch (const std::system_error&) {
      break;
    }
  }
  serve(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace lacuna::host
