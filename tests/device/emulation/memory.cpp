// Shared memory of the block that is being run, and what its accesses and mbarriers mean for races.
#include "tests/device/emulation/block_state.hpp"

namespace emulation {

unsigned char* shared_memory(unsigned address, std::size_t bytes) {
  const BlockLaunch& launch = current->launch;
  if (address + bytes > static_cast<std::size_t>(launch.smem_bytes)) {
    throw Fault("address " + std::to_string(address) + " of shared memory is past its end");
  }
  return launch.kernel.smem.data() + address;
}

namespace {

void note_shared(std::size_t address, std::size_t bytes, Actor actor, Access access,
                 const void* place) {
  if (!finds_races()) return;
  const Lane& lane = *current->running;
  const int thread = actor == Actor::kWarp ? lane.thread - lane.thread % kWarpLanes : lane.thread;
  current->races->note(thread, lane.part, lane.is_atomic ? Access::kAtomic : access, address, bytes,
                       place);
}

}  // namespace

void note_access(const void* pointer, std::size_t bytes, Access access, const void* place) {
  if (!finds_races() || current->running == nullptr) return;
  const auto address = static_cast<std::size_t>(static_cast<const unsigned char*>(pointer) -
                                                current->launch.kernel.smem.data());
  if (address < static_cast<std::size_t>(current->launch.smem_bytes))
    note_shared(address, bytes, Actor::kThread, access, place);
}

AtomicAccess::AtomicAccess() { current->running->is_atomic = true; }
AtomicAccess::~AtomicAccess() { current->running->is_atomic = false; }

const unsigned char* read_shared(unsigned address, std::size_t bytes, Actor actor) {
  const unsigned char* const pointer = shared_memory(address, bytes);
  note_shared(address, bytes, actor, Access::kRead, __builtin_return_address(0));
  return pointer;
}
unsigned char* write_shared(unsigned address, std::size_t bytes, Actor actor) {
  unsigned char* const pointer = shared_memory(address, bytes);
  note_shared(address, bytes, actor, Access::kWrite, __builtin_return_address(0));
  return pointer;
}

unsigned shared_address(const void* pointer) {
  const std::span<unsigned char> smem = current->launch.kernel.smem;
  const auto* const byte = static_cast<const unsigned char*>(pointer);
  if (byte < smem.data() || byte > smem.data() + current->launch.smem_bytes) {
    throw Fault("takes the shared address of what lies elsewhere");
  }
  return static_cast<unsigned>(byte - smem.data());
}

void fence_proxies() {
  if (finds_races()) current->races->fence(current->running->thread);
}

void begin_mbarrier(unsigned address, std::size_t bytes) {
  if (!finds_races()) return;
  current->mbarriers[address] = {};
  current->races->exempt(address, bytes);
}
void release_to(unsigned barrier) {
  if (!finds_races()) return;
  Lane& lane = *current->running;
  Races& races = *current->races;
  Races::Arrivals& arrivals = current->mbarriers[barrier].arrivals;
  if (lane.part == Part::kLoads) {
    races.release_work(lane.thread, lane.part, races.group(lane.thread, lane.part), arrivals);
    races.begin_group(lane.thread, lane.part);
  } else {
    races.release(lane.thread, arrivals);
  }
}
void release_copies_to(unsigned barrier) {
  if (!finds_races()) return;
  Races& races = *current->races;
  const int thread = current->running->thread;
  races.release_work(thread, Part::kCopies, races.group(thread, Part::kCopies) - 1,
                     current->mbarriers[barrier].arrivals);
}
void complete_phase(unsigned barrier) {
  if (!finds_races()) return;
  MbarrierClocks& clocks = current->mbarriers[barrier];
  clocks.complete = Races::told(clocks.arrivals);
}
void acquire_from(unsigned barrier) {
  if (finds_races())
    current->races->acquire(current->running->thread, current->mbarriers[barrier].complete);
}

}  // namespace emulation
