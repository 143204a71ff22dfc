#include "tests/device/emulation/block.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "tests/device/emulation/block_state.hpp"

namespace emulation {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr unsigned char kPoison = 0xff;

/// All warps that wait for one another again and again: nobody will come.
constexpr int kMostYields = 100000;
/// Turns of the others for one of a warp that is starved.
constexpr int kStarvedTurns = 64;

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

}  // namespace

/// The stack of the n-th thread of those that run at the same time; kept from block to block.
std::span<std::byte> stack_of(int lane) {
  thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
  while (std::ssize(stacks) <= lane) {
    stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(kStackBytes));
  }
  return {stacks[static_cast<std::size_t>(lane)].get(), kStackBytes};
}

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

namespace {

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
  if (block.races) block.races->meet(0, static_cast<int>(std::ssize(block.lanes)));
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

bool has_threads_to_run(const Block& block, int warp) {
  for (int n = 0; n < kWarpLanes; ++n) {
    const LaneState state = block.lanes[static_cast<std::size_t>(warp * kWarpLanes + n)]->state;
    if (state == LaneState::kRuns || state == LaneState::kYields) return true;
  }
  return false;
}

/// Is it not the turn of this warp, although it could run?
bool is_starved(const Block& block, int warp, int round) {
  return block.schedule.order == WarpOrder::kStarved &&
         warp == static_cast<int>(block.schedule.seed) && (round + 1) % kStarvedTurns != 0 &&
         has_threads_to_run(block, warp);
}

/// A turn of each warp; of those at the barrier of all threads, if nobody else can run, the next
/// begins behind it. The block has ended when no thread is left.
void run_round(Block& block) {
  Turns& turns = block.turns;
  if (turns.round == 0 && block.schedule.order == WarpOrder::kShuffled)
    std::ranges::shuffle(turns.warps, turns.random);
  bool yields = false;
  for (const int warp : turns.warps) {
    yields = is_starved(block, warp, turns.round) || run_warp(block, warp) || yields;
    if (!block.fault.empty()) return;
  }
  if (turns.round++ == kMostYields) block.fault = "warps wait for something that does not come";
  if (yields) return;
  turns.round = 0;
  block.has_ended = !open_barrier(block);
}

/// `first_lane`: of those of all blocks.
std::unique_ptr<Block> make_block(const BlockLaunch& launch, const Schedule& schedule,
                                  int first_lane) {
  const std::span<unsigned char> smem = launch.kernel.smem;
  std::unique_ptr<Block> block(
      new Block{launch, schedule, {}, {}, {}, {}, 0, 0, {}, {}, {}, {}, {}, {}, {}, {}});
  // Accesses have to be those of their issue.
  if (kTracesAccesses && schedule.landing == Landing::kEarly)
    block->races = std::make_unique<Races>(launch.threads,
                                           smem.first(static_cast<std::size_t>(launch.smem_bytes)));
  for (int thread = 0; thread < launch.threads; ++thread)
    block->lanes.push_back(std::make_unique<Lane>(thread, first_lane + thread, schedule.landing));
  block->meetings.resize(block->lanes.size() / kWarpLanes);
  block->turns.warps.resize(block->meetings.size());
  std::iota(block->turns.warps.begin(), block->turns.warps.end(), 0);
  if (schedule.order == WarpOrder::kDescending) std::ranges::reverse(block->turns.warps);
  block->turns.random.seed(schedule.seed);
  return block;
}

/// Does each byte say that nobody wrote it?
bool is_untouched(std::span<const unsigned char> bytes) {
  return bytes.empty() || (bytes[0] == kPoison &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// All rounds of a block; of one beside others a single round, behind which the shared memory that
/// it asked for is kept until its next turn.
void run_turn(Block& block, bool is_alone) {
  const auto asked = static_cast<std::size_t>(block.launch.smem_bytes);
  const std::span<unsigned char> smem = block.launch.kernel.smem.first(asked),
                                 behind = block.launch.kernel.smem.subspan(asked);
  if (block.smem.empty()) {
    std::ranges::fill(smem, kPoison);
  } else {
    std::ranges::copy(block.smem, smem.begin());
  }
  std::ranges::fill(behind, kPoison);
  current = &block;
  do run_round(block);
  while (is_alone && !block.has_ended && block.fault.empty());
  current = nullptr;
  if (block.fault.empty() && !is_untouched(behind))
    block.fault = "wrote past the end of shared memory";
  if (block.has_ended && block.races && block.fault.empty()) block.fault = block.races->report();
  if (!is_alone) block.smem.assign(smem.begin(), smem.end());
}

/// Which blocks have their turn in a pass over all of them, as warps have within a block: in order,
/// from the last, in any order, or one of them only now and then.
std::vector<std::size_t> blocks_of_pass(std::size_t count, int pass, const Schedule& schedule,
                                        std::mt19937& random) {
  std::vector<std::size_t> blocks(count);
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  if (schedule.order == WarpOrder::kDescending) std::ranges::reverse(blocks);
  if (schedule.order == WarpOrder::kShuffled) std::ranges::shuffle(blocks, random);
  if (schedule.order == WarpOrder::kStarved && count > 1 && pass % kStarvedTurns != 0)
    std::erase(blocks, schedule.seed % count);
  return blocks;
}

}  // namespace

std::string run_together(std::span<const BlockLaunch> launches, const Schedule& schedule) {
  std::vector<std::unique_ptr<Block>> blocks;
  int lanes = 0;
  for (const BlockLaunch& launch : launches) {
    if (launch.threads % kWarpLanes != 0) return "the block is not made of whole warps";
    if (static_cast<std::size_t>(launch.smem_bytes) > launch.kernel.smem.size())
      return "more shared memory than there is";
    blocks.push_back(make_block(launch, schedule, lanes));
    lanes += launch.threads;
  }
  std::mt19937 random(schedule.seed);
  std::size_t ended = 0;
  for (int pass = 0; ended < blocks.size(); ++pass) {
    for (const std::size_t n : blocks_of_pass(blocks.size(), pass, schedule, random)) {
      Block& block = *blocks[n];
      if (block.has_ended) continue;
      run_turn(block, blocks.size() == 1);
      if (!block.fault.empty())
        return "block " + std::to_string(block.launch.block) + ", " + block.fault;
      ended += block.has_ended ? 1 : 0;
    }
  }
  return "";
}

std::string run_block(const BlockLaunch& launch, const Schedule& schedule) {
  return run_together({&launch, 1}, schedule);
}

void fail(const char* reason) { throw Fault(reason); }

int block_index() { return current->launch.block; }
int block_row() { return current->launch.row; }
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
    if (block.races) block.races->meet_after_reads(thread - thread % kWarpLanes, kWarpLanes);
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
  if (!finds_races()) return;
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
  if (finds_races()) current->races->release(current->running->thread, meeting.arrivals);
  if (++meeting.arrived < threads) return false;
  meeting.arrived = 0;
  meeting.result = std::exchange(meeting.votes, true);
  meeting.before = Races::told(meeting.arrivals);
  ++meeting.number;
  return true;
}

}  // namespace

bool meet_some(int barrier, int threads, bool vote) {
  NamedMeeting& meeting = current->named.at(static_cast<std::size_t>(barrier));
  const int number = meeting.number;
  if (take_part(meeting, threads, vote)) yield();  // on together with the others of its warp
  while (meeting.number == number) yield();
  if (finds_races()) current->races->acquire(current->running->thread, meeting.before);
  return meeting.result;
}

void arrive_some(int barrier, int threads) {
  take_part(current->named.at(static_cast<std::size_t>(barrier)), threads, true);
}

}  // namespace emulation
