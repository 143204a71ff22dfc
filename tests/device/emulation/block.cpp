#include "tests/device/emulation/block.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/device/emulation/fiber.hpp"
#include "tests/device/emulation/work_queue.hpp"

namespace emulation {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr unsigned char kPoison = 0xff;

/// The stack of the n-th thread; kept from block to block.
std::span<std::byte> stack_of(int thread) {
  thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
  while (std::ssize(stacks) <= thread) {
    stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(kStackBytes));
  }
  return {stacks[static_cast<std::size_t>(thread)].get(), kStackBytes};
}

/// All warps that wait for one another again and again: nobody will come.
constexpr int kMostYields = 100000;
constexpr int kNamedBarriers = 16;
constexpr int kWarpgroupWarps = 4, kWarpgroupThreads = kWarpgroupWarps * kWarpLanes;

#ifdef EMULATION_FINDS_RACES
constexpr bool kFindsRaces = true;
#else
constexpr bool kFindsRaces = false;
#endif

enum class LaneState : std::uint8_t { kRuns, kYields, kAtBarrier, kEnded };

void run_lane(void* lane);

struct Lane {
  int thread;
  LaneState state = LaneState::kRuns;
  std::array<WorkQueue, 3> work;  ///< by Engine
  int committed_products = 0;     ///< groups of them
  Part part = Part::kSelf;        ///< whose accesses these are
  bool is_atomic = false;         ///< they are
  Fiber fiber;

  Lane(int number, Landing landing)
      : thread(number),
        work{WorkQueue(landing), WorkQueue(landing), WorkQueue(landing)},
        fiber(stack_of(number), run_lane, this) {}
  WorkQueue& of(Engine engine) { return work[static_cast<std::size_t>(engine)]; }
  bool has_work() {
    return of(Engine::kProducts).is_under_way() || of(Engine::kStores).is_under_way();
  }
};

/// The instruction in which the lanes of a warp are meeting.
struct Meeting {
  void (*combine)(Operands) = nullptr;
  std::array<void*, kWarpLanes> operands = {};
  int arrived = 0;
  std::uint64_t number = 0;  ///< of meetings before
};

struct NamedMeeting {
  int arrived = 0;
  bool votes = true;              ///< of those that have come
  bool result = true;             ///< of the meeting before
  int number = 0;                 ///< of meetings before
  Races::Clock arrivals, before;  ///< of this meeting, and the one before
};

struct MbarrierClocks {
  Races::Clock arrivals, complete;  ///< of this phase, and the one before
};

struct Block {
  const BlockLaunch& launch;
  const Schedule& schedule;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Meeting> meetings;  ///< by warp
  Fiber scheduler;
  Lane* running = nullptr;
  int votes = 0;        ///< of those that have come to the barrier
  int vote_result = 0;  ///< of the barrier passed last
  std::array<NamedMeeting, kNamedBarriers> named = {};
  std::map<unsigned, std::vector<WorkQueue::Work>> loads;  ///< by barrier
  std::string fault;
  std::unique_ptr<Races> races;
  std::map<unsigned, MbarrierClocks> mbarriers;

  Lane& lane(int warp, int index) {
    return *lanes[static_cast<std::size_t>(warp * kWarpLanes + index)];
  }
};

thread_local Block* current = nullptr;

/// Leaves the running lane for the next of its warp that can run, else for the scheduler.
void pass_on(Block& block) {
  Lane& from = *block.running;
  const int direction = block.schedule.order == WarpOrder::kDescending ? kWarpLanes - 1 : 1;
  for (int step = 1; step < kWarpLanes; ++step) {
    Lane& next =
        block.lane(from.thread / kWarpLanes, (from.thread + step * direction) % kWarpLanes);
    if (next.state != LaneState::kRuns) continue;
    block.running = &next;
    from.fiber.switch_to(next.fiber);
    return;
  }
  if (from.state != LaneState::kRuns) from.fiber.switch_to(block.scheduler);
}

/// The life of a thread.
void run_lane(void* lane) {
  Lane& self = *static_cast<Lane*>(lane);
  try {
    current->launch.kernel.run_thread(current->launch.args);
    if (self.has_work()) throw Fault("ends while its products or stores are under way");
  } catch (const Fault& fault) {
    current->fault = "thread " + std::to_string(self.thread) + ": " + fault.what();
  }
  self.state = LaneState::kEnded;
  if (!current->fault.empty()) self.fiber.switch_to(current->scheduler);
  pass_on(*current);
}

/// Opens the barrier if all threads are there. False when all have ended, or at a fault.
bool open_barrier(Block& block) {
  std::ptrdiff_t waiting = 0;
  for (const auto& lane : block.lanes) waiting += lane->state == LaneState::kAtBarrier;
  if (waiting == 0) return false;
  if (waiting != std::ssize(block.lanes)) {
    block.fault = std::to_string(waiting) + " of " + std::to_string(block.lanes.size()) +
                  " threads wait at a barrier, the others have ended";
    return false;
  }
  block.vote_result = std::exchange(block.votes, 0);
  if (kFindsRaces) block.races->meet(0, static_cast<int>(std::ssize(block.lanes)));
  for (const auto& lane : block.lanes) lane->state = LaneState::kRuns;
  return true;
}

/// Runs a warp until all of its threads wait for others. Do some only yield?
bool run_warp(Block& block, int warp) {
  Lane* first = nullptr;
  for (int n = kWarpLanes - 1; n >= 0; --n) {
    Lane& lane = block.lane(warp, n);
    if (lane.state == LaneState::kYields) lane.state = LaneState::kRuns;
    if (lane.state == LaneState::kRuns) first = &lane;
  }
  if (first == nullptr) return false;
  block.running = first;
  block.scheduler.switch_to(first->fiber);
  for (int n = 0; n < kWarpLanes; ++n)
    if (block.lane(warp, n).state == LaneState::kYields) return true;
  return false;
}

void run_threads(Block& block) {
  std::vector<int> warps(block.meetings.size());
  std::iota(warps.begin(), warps.end(), 0);
  if (block.schedule.order == WarpOrder::kDescending) std::ranges::reverse(warps);
  std::mt19937 random(block.schedule.seed);
  do {
    if (block.schedule.order == WarpOrder::kShuffled) std::ranges::shuffle(warps, random);
    bool yields = true;
    for (int round = 0; yields; ++round) {
      yields = false;
      for (const int warp : warps) {
        yields = run_warp(block, warp) || yields;
        if (!block.fault.empty()) return;
      }
      if (round == kMostYields) {
        block.fault = "warps wait for something that does not come";
        return;
      }
    }
  } while (open_barrier(block));
}

}  // namespace

std::string run_block(const BlockLaunch& launch, const Schedule& schedule) {
  if (launch.threads % kWarpLanes != 0) return "the block is not made of whole warps";
  const std::span<unsigned char> smem = launch.kernel.smem;
  const auto asked = static_cast<std::size_t>(launch.smem_bytes);
  if (asked > smem.size()) return "more shared memory than there is";
  std::ranges::fill(smem, kPoison);
  Schedule early = schedule;
  if (kFindsRaces) early.landing = Landing::kEarly;  // accesses are those of their issue
  Block block{launch, early, {}, {}, {}, {}, 0, 0, {}, {}, {}, {}, {}};
  if (kFindsRaces) block.races = std::make_unique<Races>(launch.threads, smem.first(asked));
  for (int thread = 0; thread < launch.threads; ++thread) {
    block.lanes.push_back(std::make_unique<Lane>(thread, early.landing));
  }
  block.meetings.resize(block.lanes.size() / kWarpLanes);
  current = &block;
  run_threads(block);
  current = nullptr;
  const bool is_past_end =
      std::ranges::any_of(smem.subspan(asked), [](unsigned char byte) { return byte != kPoison; });
  if (block.fault.empty() && is_past_end) block.fault = "wrote past the end of shared memory";
  if (kFindsRaces && block.fault.empty()) block.fault = block.races->report();
  return block.fault.empty() ? "" : "block " + std::to_string(launch.block) + ", " + block.fault;
}

int block_index() { return current->launch.block; }
int block_count() { return current->launch.blocks; }
int thread_index() { return current->running->thread; }

namespace {

/// Does another lane of the warp wait in a loop?
bool has_other_that_yields(Block& block, int thread) {
  for (int n = 0; n < kWarpLanes; ++n) {
    if (n == thread % kWarpLanes) continue;
    if (block.lane(thread / kWarpLanes, n).state == LaneState::kYields) return true;
  }
  return false;
}

}  // namespace

void meet_warp(void (*combine)(Operands), void* operands) {
  Block& block = *current;
  const int thread = block.running->thread;
  Meeting& meeting = block.meetings[static_cast<std::size_t>(thread / kWarpLanes)];
  if (meeting.arrived != 0 && meeting.combine != combine) {
    throw Fault("the lanes of the warp meet in different instructions");
  }
  meeting.combine = combine;
  meeting.operands[static_cast<std::size_t>(thread % kWarpLanes)] = operands;
  if (++meeting.arrived == kWarpLanes) {
    if (kFindsRaces) block.races->meet_after_reads(thread - thread % kWarpLanes, kWarpLanes);
    combine(meeting.operands);
    meeting.arrived = 0;
    ++meeting.number;
    return;
  }
  const std::uint64_t number = meeting.number;
  while (true) {
    pass_on(block);
    if (meeting.number != number) return;
    if (!has_other_that_yields(block, thread))
      throw Fault("waits in a warp instruction for lanes that are at a barrier or have ended");
    yield();  // what they wait for may come
    if (meeting.number != number) return;
  }
}

void order_warp() {
  if (!kFindsRaces) return;
  const int thread = current->running->thread;
  current->races->meet(thread - thread % kWarpLanes, kWarpLanes);
}

int meet_block(bool vote) {
  Block& block = *current;
  block.votes += vote ? 1 : 0;
  block.running->state = LaneState::kAtBarrier;
  pass_on(block);
  return block.vote_result;
}

void yield() {
  current->running->state = LaneState::kYields;
  pass_on(*current);
}

namespace {

/// One of the meeting's threads has come. Was it the last?
bool take_part(NamedMeeting& meeting, int threads, bool vote) {
  meeting.votes = meeting.votes && vote;
  if (kFindsRaces) current->races->release(current->running->thread, meeting.arrivals);
  if (++meeting.arrived < threads) return false;
  meeting.arrived = 0;
  meeting.result = std::exchange(meeting.votes, true);
  meeting.before = std::exchange(meeting.arrivals, {});
  ++meeting.number;
  return true;
}

}  // namespace

bool meet_some(int barrier, int threads, bool vote) {
  NamedMeeting& meeting = current->named.at(static_cast<std::size_t>(barrier));
  const int number = meeting.number;
  if (take_part(meeting, threads, vote)) yield();  // on together with the others of its warp
  while (meeting.number == number) yield();
  if (kFindsRaces) current->races->acquire(current->running->thread, meeting.before);
  return meeting.result;
}

void arrive_some(int barrier, int threads) {
  take_part(current->named.at(static_cast<std::size_t>(barrier)), threads, true);
}

unsigned char* shared_memory(unsigned address, std::size_t bytes) {
  const BlockLaunch& launch = current->launch;
  if (address + bytes > static_cast<std::size_t>(launch.smem_bytes)) {
    throw Fault("address " + std::to_string(address) + " of shared memory is past its end");
  }
  return launch.kernel.smem.data() + address;
}

void note_access(const void* pointer, std::size_t bytes, Access access, const void* place) {
  if (!kFindsRaces || current == nullptr || current->running == nullptr) return;
  const auto address = static_cast<std::size_t>(static_cast<const unsigned char*>(pointer) -
                                                current->launch.kernel.smem.data());
  if (address >= static_cast<std::size_t>(current->launch.smem_bytes)) return;
  const Lane& lane = *current->running;
  current->races->note(lane.thread, lane.part, lane.is_atomic ? Access::kAtomic : access, address,
                       bytes, place);
}

AtomicAccess::AtomicAccess() { current->running->is_atomic = true; }
AtomicAccess::~AtomicAccess() { current->running->is_atomic = false; }

namespace {

void note_shared(unsigned address, std::size_t bytes, Actor actor, Access access,
                 const void* place) {
  if (!kFindsRaces) return;
  const Lane& lane = *current->running;
  const int thread = actor == Actor::kWarp ? lane.thread - lane.thread % kWarpLanes : lane.thread;
  current->races->note(thread, lane.part, access, address, bytes, place);
}

}  // namespace

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

namespace {

/// A product is of four warps: it is not complete before all of them have issued it.
void await_warpgroup(int groups) {
  const int warp = current->running->thread / kWarpLanes;
  const int lane = current->running->thread % kWarpLanes;
  for (int n = 0; n < kWarpgroupWarps; ++n) {
    const Lane& other = current->lane(warp / kWarpgroupWarps * kWarpgroupWarps + n, lane);
    while (other.committed_products < groups) yield();
  }
}

Part part_of(Engine engine) {
  return engine == Engine::kCopies     ? Part::kCopies
         : engine == Engine::kProducts ? Part::kProducts
                                       : Part::kStores;
}

}  // namespace

void start_work(Engine engine, std::function<void()> work) {
  Lane& lane = *current->running;
  lane.part = part_of(engine);
  lane.of(engine).start(std::move(work));
  lane.part = Part::kSelf;
}
void commit_work(Engine engine) {
  current->running->of(engine).commit();
  if (kFindsRaces) current->races->begin_group(current->running->thread, part_of(engine));
  if (engine == Engine::kProducts) ++current->running->committed_products;
}
void wait_for_work(Engine engine, int pending) {
  if (engine == Engine::kProducts) await_warpgroup(current->running->committed_products - pending);
  current->running->of(engine).wait(pending);
  if (!kFindsRaces) return;
  const int thread = current->running->thread;
  const auto under_way = static_cast<std::uint32_t>(pending) + 1;  // and the open one
  const std::uint32_t open = current->races->group(thread, part_of(engine));
  if (open < under_way) return;
  current->races->finish_groups(thread, part_of(engine), open - under_way);
  if (engine != Engine::kProducts) return;
  Races::Clock of_warpgroup;  // it is one product
  for (int warp = 0; warp < kWarpgroupWarps; ++warp)
    current->races->release_work(thread / kWarpgroupThreads * kWarpgroupThreads + warp * kWarpLanes,
                                 Part::kProducts, open - under_way, of_warpgroup);
  current->races->acquire(thread, of_warpgroup);
}

void land_copies() { current->running->of(Engine::kCopies).wait(0); }

void start_copy(unsigned target, const void* source) {
  constexpr std::size_t kCopyBytes = 16;
  if (target % kCopyBytes != 0 || reinterpret_cast<std::uintptr_t>(source) % kCopyBytes != 0) {
    throw Fault("cp.async between addresses that are no multiples of 16");
  }
  start_work(Engine::kCopies, [target, source] {
    unsigned char* const bytes = write_shared(target, kCopyBytes);
    if (source == nullptr) {
      std::memset(bytes, 0, kCopyBytes);
    } else {
      std::memcpy(bytes, source, kCopyBytes);
    }
  });
}

void start_load(unsigned barrier, std::function<void()> load) {
  if (current->schedule.landing == Landing::kEarly) {
    Lane& lane = *current->running;
    lane.part = Part::kLoads;
    load();
    lane.part = Part::kSelf;
  } else {
    current->loads[barrier].push_back(std::move(load));
  }
}

void land_loads(unsigned barrier) {
  for (const WorkQueue::Work& load : std::exchange(current->loads[barrier], {})) load();
}

void begin_mbarrier(unsigned address, std::size_t bytes) {
  if (!kFindsRaces) return;
  current->mbarriers[address] = {};
  current->races->exempt(address, bytes);
}
void release_to(unsigned barrier) {
  if (!kFindsRaces) return;
  Lane& lane = *current->running;
  Races& races = *current->races;
  Races::Clock& arrivals = current->mbarriers[barrier].arrivals;
  if (lane.part == Part::kLoads) {
    races.release_work(lane.thread, lane.part, races.group(lane.thread, lane.part), arrivals);
    races.begin_group(lane.thread, lane.part);
  } else {
    races.release(lane.thread, arrivals);
  }
}
void release_copies_to(unsigned barrier) {
  if (!kFindsRaces) return;
  Races& races = *current->races;
  const int thread = current->running->thread;
  races.release_work(thread, Part::kCopies, races.group(thread, Part::kCopies) - 1,
                     current->mbarriers[barrier].arrivals);
}
void complete_phase(unsigned barrier) {
  if (!kFindsRaces) return;
  MbarrierClocks& clocks = current->mbarriers[barrier];
  clocks.complete = std::exchange(clocks.arrivals, {});
}
void acquire_from(unsigned barrier) {
  if (kFindsRaces)
    current->races->acquire(current->running->thread, current->mbarriers[barrier].complete);
}

}  // namespace emulation
