#include "runtime/base/threads/large_stacks.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/base/threads/first_exception.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kStackBytes = std::size_t{8} << 20;

struct SharedWork {
  const std::function<void(std::size_t)>& work;
  std::size_t items;
  std::atomic<std::size_t> next{0};
  FirstException thrown{};
};

void* take_items(void* argument) {
  SharedWork& shared = *static_cast<SharedWork*>(argument);
  try {
    for (std::size_t item = shared.next++; item < shared.items; item = shared.next++) {
      shared.work(item);
    }
  } catch (...) {
    shared.thrown.keep();
    shared.next = shared.items;
  }
  return nullptr;
}

}  // namespace

bool run_on_large_stacks(std::size_t threads, std::size_t items,
                         const std::function<void(std::size_t)>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  SharedWork shared{work, items};
  std::vector<pthread_t> started;
  started.reserve(std::min(threads, items));
  while (started.size() < threads && started.size() < items) {
    pthread_t thread{};
    // No more threads to be had: those that run do the work.
    if (pthread_create(&thread, &attributes, take_items, &shared) != 0) break;
    started.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  for (const pthread_t thread : started) pthread_join(thread, nullptr);
  shared.thrown.rethrow();
  return !started.empty() || items == 0;
}

}  // namespace lacuna
