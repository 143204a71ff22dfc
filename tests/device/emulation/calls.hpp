// What device code calls of the block that runs it (block.hpp). Every emulated kernel includes
// this, so it includes little itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace emulation {

inline constexpr int kWarpLanes = 32;

/// A kernel as its stand-in translation unit exports it (kernel.cpp.in).
struct Kernel {
  void (*run_thread)(const void* args);  ///< the body of one thread
  std::span<unsigned char> smem;         ///< the memory behind its `extern __shared__` array
};

struct NamedKernel {
  const char* entry;  ///< as the driver would find it
  Kernel kernel;
};

/// Undefined behaviour of the kernel; ends the block.
[[noreturn]] void fail(const char* reason);

int block_index();
int block_count();
int block_row();
int thread_index();

/// __syncthreads_count: meets all threads of the block; how many voted so.
int meet_block(bool vote);

/// Lets the other warps run, and later this one again: for what waits in a loop.
void yield();

/// bar.red.and, or bar.sync: meets `threads` threads at the block's barrier of this number. Did all
/// that did not only arrive vote so?
bool meet_some(int barrier, int threads, bool vote);
/// bar.arrive: counts as one of them and goes on.
void arrive_some(int barrier, int threads);

/// While it lives, accesses of the running thread are those of one atomic instruction.
class AtomicAccess {
 public:
  AtomicAccess();
  AtomicAccess(const AtomicAccess&) = delete;
  AtomicAccess& operator=(const AtomicAccess&) = delete;
  ~AtomicAccess();
};

/// `bytes` bytes of shared memory at an address as shared_address gives it.
unsigned char* shared_memory(unsigned address, std::size_t bytes);
unsigned shared_address(const void* pointer);

/// Who works for a thread. Products and stores have to be waited for before the thread ends;
/// products also wait for the other warps of the warpgroup, which have to issue the same.
enum class Engine : std::uint8_t { kCopies, kProducts, kStores };
/// Closes the group of all that was started since the last commit.
void commit_work(Engine engine);
/// Until at most `pending` of this thread's committed groups are under way.
void wait_for_work(Engine engine, int pending);

/// Copies of this thread land now, though it does not wait for them.
void land_copies();

/// Starts the copy of cp.async, of 16 or 4 bytes; `source` null: of zeros. Both sides must be
/// multiples of its size.
void start_copy(unsigned target, const void* source, std::size_t bytes = 16);

/// What the running thread has written is seen by products and by the copy engine.
void fence_proxies();

/// Loads whose bytes the barrier at this address counts.
void land_loads(unsigned barrier);

// What an mbarrier at this address of shared memory orders.
void begin_mbarrier(unsigned address, std::size_t bytes);
void release_to(unsigned barrier);         ///< the running thread arrives
void release_copies_to(unsigned barrier);  ///< its copies do, all up to the last commit
void complete_phase(unsigned barrier);     ///< behind all arrivals of the phase
void acquire_from(unsigned barrier);       ///< a phase that is complete

}  // namespace emulation
