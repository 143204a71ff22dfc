#include "tests/runtime/fake_gpu/count_allocations.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
thread_local long allocations = 0;
}  // namespace

long lacuna::allocations_of_this_thread() { return allocations; }

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
