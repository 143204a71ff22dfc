// One thread block of an emulated kernel: its threads as fibers, its barriers, its shared memory
// and its asynchronous copies. The threads of a warp take turns from one warp instruction to the
// next; a warp runs alone from one block barrier to the next, and which warp goes first is the
// schedule's choice. A kernel whose result depends on the schedule has a race.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

namespace emulation {

enum class Access : std::uint8_t;  // races.hpp, which device code does not see

inline constexpr int kWarpLanes = 32;

/// When the bytes of an asynchronous copy become visible, and a product has read its operands: at
/// once, or when that is waited for.
enum class Landing : std::uint8_t { kEarly, kLate };

/// Which warp runs first between two barriers. Starved: one of them runs only now and then.
enum class WarpOrder : std::uint8_t { kAscending, kDescending, kShuffled, kStarved };

struct Schedule {
  Landing landing = Landing::kEarly;
  WarpOrder order = WarpOrder::kAscending;
  std::uint32_t seed = 0;  ///< of the shuffles; or the warp that is starved
};

/// A kernel as its stand-in translation unit exports it (kernel.cpp.in).
struct Kernel {
  void (*run_thread)(const void* args);  ///< the body of one thread
  std::span<unsigned char> smem;         ///< the memory behind its `extern __shared__` array
};

struct NamedKernel {
  std::string entry;  ///< as the driver would find it
  Kernel kernel;
};

struct BlockLaunch {
  Kernel kernel;
  const void* args = nullptr;
  int block = 0;       ///< blockIdx.x
  int threads = 0;     ///< a multiple of 32
  int smem_bytes = 0;  ///< dynamic shared memory that the launch asks for
  int blocks = 1;      ///< gridDim.x
  int row = 0;         ///< blockIdx.y
};

/// Runs all threads to their end. Shared memory starts as 0xff bytes (NaN in every float type). ""
/// or what a GPU would have answered with an error or with undefined behaviour; and races, where
/// work lands early and the kernel is compiled for it (EMULATION_FINDS_RACES).
std::string run_block(const BlockLaunch& launch, const Schedule& schedule);

/// Several blocks of one kernel at the same time, each on a multiprocessor of its own: one goes on
/// until its warps wait, then the next, which the schedule's order of warps says of blocks too. For
/// kernels whose blocks wait for one another.
std::string run_together(std::span<const BlockLaunch> launches, const Schedule& schedule);

// ---- What device code calls; only within run_block. ----

/// Undefined behaviour of the kernel; ends the block.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int block_index();
int block_count();
int block_row();
int thread_index();

/// Meets the other lanes of the warp in an instruction that all take part in. The last to come runs
/// `combine` over the operands of all, by lane.
using Operands = std::span<void* const, kWarpLanes>;
void meet_warp(void (*combine)(Operands), void* operands);
/// The last to come of a warp: what each lane has done is before what all do from here on.
void order_warp();

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

/// An access of the running thread, or of the engine whose work this is. Only shared memory counts.
void note_access(const void* pointer, std::size_t bytes, Access access, const void* place);

/// `bytes` bytes of shared memory at an address as shared_address gives it.
unsigned char* shared_memory(unsigned address, std::size_t bytes);
/// The same, to be read or written there and then. What an instruction of the whole warp does
/// counts as lane 0's: the next such instruction is behind it.
enum class Actor : std::uint8_t { kThread, kWarp };
const unsigned char* read_shared(unsigned address, std::size_t bytes, Actor actor = Actor::kThread);
unsigned char* write_shared(unsigned address, std::size_t bytes, Actor actor = Actor::kThread);
unsigned shared_address(const void* pointer);

/// Work of this thread that others do for it. Products and stores have to be waited for before the
/// thread ends; products also wait for the other warps of the warpgroup, which have to issue the
/// same.
enum class Engine : std::uint8_t { kCopies, kProducts, kStores };
void start_work(Engine engine, std::function<void()> work);
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

/// A load whose bytes the barrier at this address of shared memory counts: it lands at once, or
/// when somebody finds that barrier's phase unfinished.
void start_load(unsigned barrier, std::function<void()> load);
void land_loads(unsigned barrier);

// What an mbarrier at this address of shared memory orders.
void begin_mbarrier(unsigned address, std::size_t bytes);
void release_to(unsigned barrier);         ///< the running thread arrives
void release_copies_to(unsigned barrier);  ///< its copies do, all up to the last commit
void complete_phase(unsigned barrier);     ///< behind all arrivals of the phase
void acquire_from(unsigned barrier);       ///< a phase that is complete

}  // namespace emulation
