// The asynchronous copies of one thread: cp.async, its groups and waits.
#pragma once

#include <deque>
#include <vector>

#include "tests/device/emulation/block.hpp"

namespace emulation {

class CopyQueue {
 public:
  static constexpr std::size_t kCopyBytes = 16;

  explicit CopyQueue(Landing landing) : landing_(landing) {}

  /// `source` null: zeros. Both sides must be multiples of 16.
  void start(unsigned target, const void* source);
  /// Closes the group of all copies started since the last commit.
  void commit();
  /// Until at most `pending` committed groups are under way.
  void wait(int pending);

 private:
  struct Copy {
    unsigned char* target;
    const void* source;
  };
  using Group = std::vector<Copy>;
  static void land(const Copy& copy);

  Landing landing_;
  Group open_;
  std::deque<Group> under_way_;  ///< oldest first
};

}  // namespace emulation
