// Counts calls of operator new, to show that a path makes none, and fails them, to show what
// becomes of a path then.
#pragma once

#include <cstddef>

namespace lacuna {

long allocations_of_this_thread();

/// While it lives, calls of operator new for `least_bytes` and more fail in every thread, but for
/// the next `count`.
class FewAllocations {
 public:
  FewAllocations(long count, std::size_t least_bytes);
  ~FewAllocations();
  FewAllocations(const FewAllocations&) = delete;
  FewAllocations& operator=(const FewAllocations&) = delete;
};

}  // namespace lacuna
