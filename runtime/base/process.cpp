#include "runtime/base/process.hpp"

#include <pthread.h>

#include <atomic>

namespace lacuna {
namespace {

std::atomic<unsigned>& generation() {
  static std::atomic<unsigned> value{0};
  return value;
}

void count_fork() { generation().fetch_add(1, std::memory_order_relaxed); }

}  // namespace

unsigned process_generation() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  static_cast<void>(registered);
  return generation().load(std::memory_order_relaxed);
}

}  // namespace lacuna
