#include "tests/device/emulation/copy_queue.hpp"

#include <cstring>
#include <utility>

namespace emulation {

void CopyQueue::land(const Copy& copy) {
  if (copy.source == nullptr) {
    std::memset(copy.target, 0, kCopyBytes);
  } else {
    std::memcpy(copy.target, copy.source, kCopyBytes);
  }
}

void CopyQueue::start(unsigned target, const void* source) {
  if (target % kCopyBytes != 0 || reinterpret_cast<std::uintptr_t>(source) % kCopyBytes != 0) {
    throw Fault("cp.async between addresses that are no multiples of 16");
  }
  const Copy copy{shared_memory(target, kCopyBytes), source};
  if (landing_ == Landing::kEarly) {
    land(copy);
  } else {
    open_.push_back(copy);
  }
}

void CopyQueue::commit() { under_way_.push_back(std::exchange(open_, {})); }

void CopyQueue::wait(int pending) {
  while (std::ssize(under_way_) > pending) {
    for (const Copy& copy : under_way_.front()) land(copy);
    under_way_.pop_front();
  }
}

}  // namespace emulation
