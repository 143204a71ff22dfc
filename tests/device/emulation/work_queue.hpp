// Work of one thread that goes on by itself: copies, products of warpgroups, stores of the copy
// engine. It is done at once, or when it is waited for, as the schedule says.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace emulation {

class WorkQueue {
 public:
  using Work = std::function<void()>;

  explicit WorkQueue(Landing landing) : landing_(landing) {}

  void start(Work work) {
    if (landing_ == Landing::kEarly) {
      work();
    } else {
      open_.push_back(std::move(work));
    }
  }
  /// Closes the group of all work started since the last commit.
  void commit() { under_way_.push_back(std::exchange(open_, {})); }
  /// Until at most `pending` committed groups are under way.
  void wait(int pending) {
    while (std::ssize(under_way_) > pending) {
      const std::vector<Work> group = std::move(under_way_.front());
      under_way_.pop_front();
      for (const Work& work : group) work();
    }
  }
  /// Of groups without work nothing is.
  bool is_under_way() const {
    for (const std::vector<Work>& group : under_way_) {
      if (!group.empty()) return true;
    }
    return !open_.empty();
  }

 private:
  Landing landing_;
  std::vector<Work> open_;
  std::deque<std::vector<Work>> under_way_;  ///< oldest first
};

}  // namespace emulation
