// Stores a new kernel after its first launch, in a thread that no launch waits for.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace lacuna {

class Publisher {
 public:
  Publisher() = default;
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Starts the thread; it calls `publish` once, after the first release() or in the destructor.
  /// At most once in the life of a Publisher.
  void arm(const std::function<void()>& publish);

  /// Lets the thread publish. Takes no lock and costs one atomic load after the first call.
  void release() noexcept;

 private:
  std::atomic<int> released_{0};
  std::thread thread_;
};

}  // namespace lacuna
