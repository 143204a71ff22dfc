// Carries the first exception of several threads to the thread that waits for them; an exception
// that left its thread would end the process.
#pragma once

#include <exception>
#include <mutex>

namespace lacuna {

class FirstException {
 public:
  /// In a handler: keeps what is handled, if it is the first.
  void keep() noexcept {
    const std::scoped_lock lock(mutex_);
    if (!first_) first_ = std::current_exception();
  }

  /// Once no thread keeps any more.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace lacuna
