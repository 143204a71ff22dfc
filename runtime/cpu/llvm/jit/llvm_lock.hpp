// One LLVM at a time, and none across fork(): LLVM takes locks of its own, and a child that
// inherits one of them taken waits for a thread it does not have.
#pragma once

#include <mutex>

namespace lacuna::host {

/// Held by whoever calls into LLVM; fork() waits for it.
std::unique_lock<std::mutex> lock_llvm();

}  // namespace lacuna::host
