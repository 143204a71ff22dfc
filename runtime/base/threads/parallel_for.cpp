#include "runtime/base/threads/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/threads/first_exception.hpp"

namespace lacuna {
namespace {

/// The items of one call, which workers take one by one.
struct Items {
  const std::function<void(std::int64_t, std::size_t)>& work;
  const std::int64_t count;
  std::atomic<std::int64_t> next{0};
  FirstException thrown{};

  void take(std::size_t worker) noexcept {
    try {
      for (std::int64_t item = next++; item < count; item = next++) work(item, worker);
    } catch (...) {
      thrown.keep();
      next = count;
    }
  }
};

void take_items(void* items, std::size_t worker) { static_cast<Items*>(items)->take(worker); }

/// A lender that makes threads for one call.
void make_threads(void*, std::size_t workers, ThreadLender::Work work, void* context) {
  std::vector<std::jthread> threads;
  try {
    for (std::size_t t = 1; t < workers; ++t) threads.emplace_back(work, context, t);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run, and this one, do the work.
  }
  work(context, 0);
}

}  // namespace

std::size_t worker_count(const Threads& threads, std::int64_t items) {
  const std::int64_t wanted =
      threads.count > 0 ? threads.count : std::thread::hardware_concurrency();
  return static_cast<std::size_t>(std::max<std::int64_t>(1, std::min(wanted, items)));
}

void parallel_for(const Threads& threads, std::size_t workers, std::int64_t items,
                  const std::function<void(std::int64_t, std::size_t)>& work) {
  constexpr ThreadLender kMaker{&make_threads, nullptr};
  const ThreadLender& lender = threads.lender != nullptr ? *threads.lender : kMaker;
  Items taken{work, items};
  lender.lend(lender.self, workers, &take_items, &taken);
  taken.thrown.rethrow();
}

void parallel_for(std::size_t workers, std::int64_t items,
                  const std::function<void(std::int64_t, std::size_t)>& work) {
  parallel_for(Threads(), workers, items, work);
}

}  // namespace lacuna
