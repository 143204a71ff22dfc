// What the threads of a block have under way by others: cp.async, products of warpgroups, stores
// and loads of the copy engine.
#include <cstring>
#include <utility>

#include "tests/device/emulation/block_state.hpp"

namespace emulation {

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
  if (finds_races()) current->races->begin_group(current->running->thread, part_of(engine));
  if (engine == Engine::kProducts) ++current->running->committed_products;
}
void wait_for_work(Engine engine, int pending) {
  if (engine == Engine::kProducts) await_warpgroup(current->running->committed_products - pending);
  current->running->of(engine).wait(pending);
  if (!finds_races()) return;
  const int thread = current->running->thread;
  const auto under_way = static_cast<std::uint32_t>(pending) + 1;  // and the open one
  const std::uint32_t open = current->races->group(thread, part_of(engine));
  if (open < under_way) return;
  current->races->finish_groups(thread, part_of(engine), open - under_way);
  if (engine != Engine::kProducts) return;
  current->races->acquire_work(thread, thread / kWarpgroupThreads * kWarpgroupThreads,
                               kWarpgroupWarps, Part::kProducts,
                               open - under_way);  // it is one product
}

void land_copies() { current->running->of(Engine::kCopies).wait(0); }

void start_copy(unsigned target, const void* source, std::size_t bytes) {
  if (target % bytes != 0 || reinterpret_cast<std::uintptr_t>(source) % bytes != 0) {
    throw Fault("cp.async between addresses that are no multiples of " + std::to_string(bytes));
  }
  shared_memory(target, bytes);  // it is who issues a copy that is at fault
  start_work(Engine::kCopies, [target, source, bytes] {
    unsigned char* const copy = write_shared(target, bytes);
    if (source == nullptr) {
      std::memset(copy, 0, bytes);
    } else {
      std::memcpy(copy, source, bytes);
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

}  // namespace emulation
