// The state of the block that is being run: for block.cpp, which runs it, and for memory.cpp and
// engines.cpp, which do what its threads ask for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/fiber.hpp"
#include "tests/device/emulation/races/races.hpp"

namespace emulation {

inline constexpr int kNamedBarriers = 16;
inline constexpr int kWarpgroupWarps = 4, kWarpgroupThreads = kWarpgroupWarps * kWarpLanes;

/// Are the kernels of this executable compiled with a call for each access?
#ifdef EMULATION_FINDS_RACES
inline constexpr bool kTracesAccesses = true;
#else
inline constexpr bool kTracesAccesses = false;
#endif

enum class LaneState : std::uint8_t { kRuns, kYields, kAtBarrier, kEnded };

/// The life of a thread, on its stack.
void run_lane(void* lane);
std::span<std::byte> stack_of(int lane);

/// Work of one thread that goes on by itself: copies, products of warpgroups, stores of the copy
/// engine. It is done at once, or when it is waited for, as the schedule says.
class WorkQueue {
 public:
  using Work = std::function<void()>;

  explicit WorkQueue(Landing landing) : landing_(landing) {}

  void start(Work work) {
    if (landing_ == Landing::kEarly) {
      work();
    } else {
      open_.push_back(std::move(work));
    }
  }
  /// Closes the group of all work started since the last commit.
  void commit() { under_way_.push_back(std::exchange(open_, {})); }
  /// Until at most `pending` committed groups are under way.
  void wait(int pending) {
    while (std::ssize(under_way_) > pending) {
      const std::vector<Work> group = std::move(under_way_.front());
      under_way_.erase(under_way_.begin());
      for (const Work& work : group) work();
    }
  }
  /// Of groups without work nothing is.
  bool is_under_way() const {
    for (const std::vector<Work>& group : under_way_) {
      if (!group.empty()) return true;
    }
    return !open_.empty();
  }

 private:
  Landing landing_;
  std::vector<Work> open_;
  std::vector<std::vector<Work>> under_way_;  ///< oldest first; few
};

struct Lane {
  int thread;
  LaneState state = LaneState::kRuns;
  std::array<WorkQueue, 3> work;  ///< by Engine
  int committed_products = 0;     ///< groups of them
  Part part = Part::kSelf;        ///< whose accesses these are
  bool is_atomic = false;         ///< they are
  Fiber fiber;

  /// `lane`: of all blocks that run at the same time.
  Lane(int number, int lane, Landing landing)
      : thread(number),
        work{WorkQueue(landing), WorkQueue(landing), WorkQueue(landing)},
        fiber(stack_of(lane), run_lane, this) {}
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
  bool votes = true;         ///< of those that have come
  bool result = true;        ///< of the meeting before
  int number = 0;            ///< of meetings before
  Races::Arrivals arrivals;  ///< of this meeting
  Races::Told before;        ///< of the one before
};

struct MbarrierClocks {
  Races::Arrivals arrivals;  ///< of this phase
  Races::Told complete;      ///< of the one before
};

/// Whose turn it is: a pass over the warps is a round, and rounds are counted from one barrier of
/// all threads to the next.
struct Turns {
  std::vector<int> warps = {};
  std::mt19937 random = {};
  int round = 0;
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
  std::unique_ptr<Races> races;  ///< null: nobody looks for them
  std::map<unsigned, MbarrierClocks> mbarriers;
  Turns turns;
  bool has_ended = false;
  std::vector<unsigned char> smem;  ///< while another block runs

  Lane& lane(int warp, int index) {
    return *lanes[static_cast<std::size_t>(warp * kWarpLanes + index)];
  }
};

inline thread_local Block* current = nullptr;

/// Does someone look for races in the block that is being run?
inline bool finds_races() {
  return kTracesAccesses && current != nullptr && current->races != nullptr;
}

}  // namespace emulation
