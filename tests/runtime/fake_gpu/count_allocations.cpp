#include "tests/runtime/fake_gpu/count_allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {
constexpr long kUnlimited = std::numeric_limits<long>::max() / 2;
thread_local long allocations = 0;
std::atomic<long> allocations_left = kUnlimited;
std::atomic<std::size_t> least_bytes_counted = 0;
}  // namespace

long lacuna::allocations_of_this_thread() { return allocations; }

lacuna::FewAllocations::FewAllocations(long count, std::size_t least_bytes) {
  least_bytes_counted = least_bytes;
  allocations_left = count;
}
lacuna::FewAllocations::~FewAllocations() { allocations_left = kUnlimited; }

void* operator new(std::size_t bytes) {
  ++allocations;
  if (bytes >= least_bytes_counted && --allocations_left < 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
