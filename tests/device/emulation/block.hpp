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

#include "tests/device/emulation/calls.hpp"

namespace emulation {

enum class Access : std::uint8_t;  // races.hpp, which device code does not see

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

// ---- What stands in for instructions calls; only within run_block. ----

/// Undefined behaviour of the kernel; ends the block.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Meets the other lanes of the warp in an instruction that all take part in. The last to come runs
/// `combine` over the operands of all, by lane.
using Operands = std::span<void* const, kWarpLanes>;
void meet_warp(void (*combine)(Operands), void* operands);
/// The last to come of a warp: what each lane has done is before what all do from here on.
void order_warp();

/// An access of the running thread, or of the engine whose work this is. Only shared memory counts.
void note_access(const void* pointer, std::size_t bytes, Access access, const void* place);

/// shared_memory, to be read or written there and then. What an instruction of the whole warp does
/// counts as lane 0's: the next such instruction is behind it.
enum class Actor : std::uint8_t { kThread, kWarp };
const unsigned char* read_shared(unsigned address, std::size_t bytes, Actor actor = Actor::kThread);
unsigned char* write_shared(unsigned address, std::size_t bytes, Actor actor = Actor::kThread);

/// Work of the running thread that an engine does for it.
void start_work(Engine engine, std::function<void()> work);

/// A load whose bytes the barrier at this address of shared memory counts: it lands at once, or
/// when somebody finds that barrier's phase unfinished.
void start_load(unsigned barrier, std::function<void()> load);

}  // namespace emulation
