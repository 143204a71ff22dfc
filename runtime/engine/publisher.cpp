#include "runtime/engine/publisher.hpp"

#include <system_error>
#include <utility>

namespace lacuna {

void Publisher::arm(const std::function<void()>& publish) {
  auto body = [this, publish] {
    released_.wait(0, std::memory_order_acquire);
    publish();
  };
  try {
    thread_ = std::thread(std::move(body));
  } catch (const std::system_error&) {
    publish();  // no thread to be had: now, then
  }
}

void Publisher::release() noexcept {
  if (released_.load(std::memory_order_relaxed) != 0) return;
  released_.store(1, std::memory_order_release);
  released_.notify_all();
}

Publisher::~Publisher() {
  release();
  if (thread_.joinable()) thread_.join();
}

}  // namespace lacuna
