// What earlier launches of a kernel computed on the host and later ones can use again: the values
// of the last shape, and tensor maps. A launch never waits for them: if another thread is using
// them, it computes its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "compiler/emit/launch_program.hpp"
#include "runtime/cuda/map_cache.hpp"

namespace lacuna {

inline constexpr int kMaxLaunchValues = 128;

struct LaunchValues {
  std::int32_t data[kMaxLaunchValues];
};

/// Of a GPU's kernel, from its preparation on.
struct RecentLaunches {
  std::atomic_flag in_use;
  std::optional<LaunchShape> shape;
  std::int64_t sm_margin = 0;
  LaunchValues values;  ///< of `shape` and `sm_margin`
  MapCache maps;
};

/// Holds what launches share for as long as it lives, or nothing, if another thread does.
class RecentLaunchesHold {
 public:
  /// `recent`: may be null.
  explicit RecentLaunchesHold(RecentLaunches* recent)
      : recent_(recent != nullptr && !recent->in_use.test_and_set(std::memory_order_acquire)
                    ? recent
                    : nullptr) {}
  ~RecentLaunchesHold() {
    if (recent_ != nullptr) recent_->in_use.clear(std::memory_order_release);
  }
  RecentLaunchesHold(const RecentLaunchesHold&) = delete;
  RecentLaunchesHold& operator=(const RecentLaunchesHold&) = delete;

  explicit operator bool() const { return recent_ != nullptr; }
  RecentLaunches* operator->() const { return recent_; }

 private:
  RecentLaunches* recent_;
};

}  // namespace lacuna
