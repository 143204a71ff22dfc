#include "runtime/cpu/llvm/jit/llvm_lock.hpp"

#include <pthread.h>

namespace lacuna::host {
namespace {

/// Never destroyed: kernels may be released at any time until the process ends.
std::mutex& llvm() {
  static auto* const instance = new std::mutex;
  return *instance;
}

void lock_before_fork() { llvm().lock(); }
void unlock_after_fork() { llvm().unlock(); }

}  // namespace

std::unique_lock<std::mutex> lock_llvm() {
  static const int registered =
      pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
  static_cast<void>(registered);
  return std::unique_lock(llvm());
}

}  // namespace lacuna::host
