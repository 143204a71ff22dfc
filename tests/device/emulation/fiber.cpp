#include "tests/device/emulation/fiber.hpp"

#include <cstdint>
#include <cstdlib>

#ifdef LACUNA_SANITIZES_ADDRESS
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {
namespace {

// The address sanitizer has to know on which stack it is.
#ifdef LACUNA_SANITIZES_ADDRESS
std::span<std::byte> stack_of_caller() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) std::abort();
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return {static_cast<std::byte*>(begin), bytes};
}
void begin_stack(std::span<std::byte> stack) {
  ASAN_UNPOISON_MEMORY_REGION(stack.data(), stack.size());  // what another fiber left behind
}
void leave(void** state, std::span<std::byte> next) {
  __sanitizer_start_switch_fiber(state, next.data(), next.size());
}
void arrive(void* state) { __sanitizer_finish_switch_fiber(state, nullptr, nullptr); }
#else
std::span<std::byte> stack_of_caller() { return {}; }
void begin_stack(std::span<std::byte>) {}
void leave(void**, std::span<std::byte>) {}
void arrive(void*) {}
#endif

}  // namespace

Fiber::Fiber() : stack_(stack_of_caller()) {}

Fiber::Fiber(std::span<std::byte> stack, void (*body)(void*), void* argument)
    : stack_(stack), body_(body), argument_(argument), is_new_(true) {
  begin_stack(stack);
  if (getcontext(&start_) != 0) std::abort();
  start_.uc_stack.ss_sp = stack.data();
  start_.uc_stack.ss_size = stack.size();
  start_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);  // makecontext hands over ints
  makecontext(&start_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

void Fiber::enter(unsigned high, unsigned low) {
  arrive(nullptr);
  const auto* self = reinterpret_cast<const Fiber*>(std::uintptr_t{high} << 32 | low);
  self->body_(self->argument_);
  std::abort();
}

void Fiber::resume() {
  if (!is_new_) _longjmp(resume_, 1);
  is_new_ = false;
  setcontext(&start_);
  std::abort();
}

void Fiber::switch_to(Fiber& next) {
  leave(&sanitizer_state_, next.stack_);
  if (_setjmp(resume_) == 0) next.resume();
  arrive(sanitizer_state_);
}

}  // namespace emulation
