// Fibers: stacks of their own within one operating system thread, switched by hand. Each thread of
// an emulated block is one.
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <span>

namespace emulation {

class Fiber {
 public:
  /// The caller's own stack: somewhere to come back to.
  Fiber();
  /// At the first switch runs body(argument), which must not return, on `stack`.
  Fiber(std::span<std::byte> stack, void (*body)(void*), void* argument);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  /// Leaves this fiber, which must be the running one, for `next`; returns when another switches
  /// back.
  void switch_to(Fiber& next);

 private:
  [[noreturn]] static void enter(unsigned high, unsigned low);
  [[noreturn]] void resume();

  std::span<std::byte> stack_;
  void* sanitizer_state_ = nullptr;  ///< while another fiber runs
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool is_new_ = false;
  ucontext_t start_;     ///< makes the stack the running one
  std::jmp_buf resume_;  ///< switches later on: unlike swapcontext without a system call
};

}  // namespace emulation
