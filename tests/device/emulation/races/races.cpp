#include "tests/device/emulation/races/races.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

/// Where the linker has put the executable: places count from there, for addr2line.
extern "C" const char __executable_start;  // NOLINT(bugprone-reserved-identifier): the linker's

namespace emulation {
namespace {

constexpr const char* kNames[] = {"", "", "'s copy", "'s product", "'s store", "'s load"};

constexpr std::size_t kFewReads = 4;
constexpr std::size_t kFirstEngine = static_cast<std::size_t>(Part::kCopies);

std::uint32_t warp_of(std::uint32_t actor) { return actor / (kParts * 32); }

void raise(std::uint32_t& time, std::uint32_t to) { time = std::max(time, to); }

void join(Races::Clock& to, const Races::Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t n = 0; n < from.size(); ++n) raise(to[n], from[n]);
}

}  // namespace

Races::Races(int threads, std::span<const unsigned char> smem)
    : smem_(smem),
      threads_(static_cast<std::size_t>(threads)),
      bytes_(smem.size(), kUntouched),
      histories_(2) {
  const auto nothing = std::make_shared<Clock>(threads_.size() * kParts);
  for (Thread& thread : threads_) {
    thread.known = nothing;
    std::ranges::fill(thread.time, 1);
  }
}

void Races::exempt(std::size_t address, std::size_t bytes) {
  for (std::size_t n = address; n < std::min(address + bytes, bytes_.size()); ++n)
    bytes_[n] = kExempt;
}

bool Races::knows(int thread, Part part, const Event& event) const {
  const Thread& self = state(thread);
  const std::size_t first = actor(thread, Part::kSelf);
  if (event.actor >= first && event.actor < first + kParts) {
    const std::size_t of = event.actor - first;
    // A group's own accesses are in order, as the instructions of one engine are.
    return of <= index(Part::kReads) || event.time <= self.finished[of] ||
           (of == index(part) && event.time == self.time[of]);
  }
  return event.time <= (*self.known)[event.actor];
}

void Races::note(int thread, Part part, Access access, std::size_t address, std::size_t bytes,
                 const void* place) {
  check_agreed();
  if (part == Part::kSelf && access == Access::kRead) part = Part::kReads;
  const Event event = {static_cast<std::uint32_t>(actor(thread, part)),
                       state(thread).time[index(part)], place, access == Access::kAtomic};
  const std::size_t end = std::min(address + bytes, bytes_.size());
  for (std::size_t first = address, next = address; first < end; first = next) {
    while (next < end && bytes_[next] == bytes_[first]) ++next;
    if (bytes_[first] == kExempt || is_known(first, next, access, event)) continue;
    check_write(thread, part, access, first, next, event);
    if (access == Access::kRead) {
      if (part == Part::kProducts || part == Part::kStores) check_fence(first, event);
      add_read(thread, part, first, next, event);
    } else {
      check_reads(thread, part, first, event);
    }
  }
  if (access != Access::kRead && address < end) set_write(address, end, event);
}

bool Races::is_known(std::size_t first, std::size_t end, Access access, const Event& event) const {
  const auto is_same = [&](const Event& other) {
    return other.actor == event.actor && other.time == event.time;
  };
  const History& history = histories_[bytes_[first]];
  if (access == Access::kRead) return !history.reads.empty() && is_same(history.reads.back());
  return access == Access::kWrite && history.reads.empty() && is_same(history.write) &&
         !history.write.is_atomic && is_all_of(bytes_[first], end - first);
}

void Races::check_write(int thread, Part part, Access access, std::size_t first, std::size_t end,
                        const Event& event) {
  const Event& write = histories_[bytes_[first]].write;
  const bool both_atomic = write.is_atomic && event.is_atomic;
  if (write.time == 0 || both_atomic || knows(thread, part, write)) return;
  const bool is_one_instruction =
      write.place == event.place && warp_of(write.actor) == warp_of(event.actor);
  if (access != Access::kWrite || !is_one_instruction)
    return tell(first, access, event, write, true);
  for (std::size_t n = first; n < end; ++n) agreed_.push_back({n, smem_[n], event, write});
}

void Races::check_reads(int thread, Part part, std::size_t address, const Event& event) {
  for (const Event& read : histories_[bytes_[address]].reads)
    if (!knows(thread, part, read)) tell(address, Access::kWrite, event, read, false);
}

void Races::fence(int thread) {
  Thread& self = state(thread);
  self.fenced = self.time[index(Part::kSelf)]++;
}

void Races::check_fence(std::size_t address, const Event& event) {
  const Event& write = histories_[bytes_[address]].write;
  const bool is_of_thread = write.actor % kParts == index(Part::kSelf);
  const int writer = static_cast<int>(write.actor / kParts);
  if (write.time == 0 || !is_of_thread || write.time <= state(writer).fenced) return;
  tell(address, Access::kRead, event, write, true, ", without a fence between proxies");
}

void Races::add_read(int thread, Part part, std::size_t first, std::size_t end,
                     const Event& event) {
  const HistoryIndex before = bytes_[first];
  if (!is_all_of(before, end - first)) {
    const HistoryIndex split = begin_history(first, end);
    histories_[split].write = histories_[before].write;
    histories_[split].reads = histories_[before].reads;
    histories_[split].most_reads = histories_[before].most_reads;
  }
  History& history = histories_[bytes_[first]];
  // Who comes after this read comes after those that it comes after. Looked at now and then, as
  // many read what they all wait for.
  if (history.reads.size() >= history.most_reads) {
    std::erase_if(history.reads, [&](const Event& read) { return knows(thread, part, read); });
    history.most_reads = std::max(kFewReads, 2 * history.reads.size());
  }
  history.reads.push_back(event);
}

void Races::set_write(std::size_t first, std::size_t end, const Event& event) {
  const HistoryIndex before = bytes_[first];
  std::size_t next = first;
  while (next < end && bytes_[next] == before) ++next;
  const bool is_whole = next == end && is_all_of(before, end - first);
  History& history = histories_[is_whole ? before : begin_history(first, end)];
  history.reads.clear();
  history.most_reads = kFewReads;
  history.write = event;
}

bool Races::is_all_of(HistoryIndex history, std::size_t bytes) const {
  return history > kExempt && histories_[history].bytes == bytes;
}

Races::HistoryIndex Races::begin_history(std::size_t first, std::size_t end) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<HistoryIndex>(histories_.size()));
    histories_.emplace_back();
  }
  const HistoryIndex begun = unused_.back();
  unused_.pop_back();
  for (std::size_t n = first; n < end; ++n) {
    if (bytes_[n] == kExempt) continue;
    const HistoryIndex before = std::exchange(bytes_[n], begun);
    if (before != kUntouched && --histories_[before].bytes == 0) unused_.push_back(before);
    ++histories_[begun].bytes;
  }
  if (histories_[begun].bytes == 0) unused_.push_back(begun);  // all exempt
  return begun;
}

void Races::check_agreed() {
  for (const Agreed& write : agreed_)
    if (smem_[write.address] != write.value)
      tell(write.address, Access::kWrite, write.event, write.before, true);
  agreed_.clear();
}

const std::string& Races::report() {
  check_agreed();
  return report_;
}

void Races::tell(std::size_t address, Access access, const Event& event, const Event& before,
                 bool before_was_write, const char* fault) {
  if (!report_.empty()) return;
  const auto who = [](const Event& e) {
    return "thread " + std::to_string(e.actor / kParts) + kNames[e.actor % kParts];
  };
  const auto where = [](const Event& e) {
    std::ostringstream text;
    text << " (at 0x" << std::hex << static_cast<const char*>(e.place) - &__executable_start << ")";
    return text.str();
  };
  std::ostringstream text;
  text << "a race in shared memory, byte " << address << ": " << who(event)
       << (access == Access::kRead ? " reads" : " writes") << where(event) << " what "
       << who(before) << (before_was_write ? " writes" : " reads") << where(before) << fault;
  report_ = text.str();
}

void Races::tell_own(int thread, Clock& to) {
  Thread& self = state(thread);
  const std::size_t first = actor(thread, Part::kSelf);
  for (std::size_t n = 0; n < kFirstEngine; ++n) raise(to[first + n], self.time[n]++);
  for (std::size_t n = kFirstEngine; n < kParts; ++n) raise(to[first + n], self.finished[n]);
}

void Races::release(int thread, Arrivals& to) {
  const std::shared_ptr<Clock>& known = state(thread).known;
  if (to.joined != known) {
    join(to.clock, *known);
    to.joined = known;
  }
  tell_own(thread, to.clock);
}

void Races::release_work(int thread, Part part, std::uint32_t time, Arrivals& to) const {
  to.clock.resize(threads_.size() * kParts);
  raise(to.clock[actor(thread, part)], time);
}

Races::Told Races::told(Arrivals& arrivals) {
  Arrivals all = std::exchange(arrivals, {});
  return all.clock.empty() ? nullptr : std::make_shared<const Clock>(std::move(all.clock));
}

bool Races::has_learnt(Thread& self, const Source& source) const {
  if (lesson_.known != self.known || lesson_.source != source) return false;
  self.known = lesson_.learnt;
  return true;
}

void Races::learn(Thread& self, Source source, const Clock& from) {
  const Clock& known = *self.known;
  std::size_t news = 0;
  while (news < from.size() && from[news] <= known[news]) ++news;
  std::shared_ptr<Clock> learnt = self.known;
  if (news < from.size()) {
    Clock joined = known;
    join(joined, from);
    learnt = lesson_.learnt;
    if (learnt == nullptr || *learnt != joined) learnt = std::make_shared<Clock>(std::move(joined));
  }
  lesson_ = {std::exchange(self.known, learnt), std::move(source), learnt};
}

void Races::acquire(int thread, const Told& from) {
  if (from == nullptr) return;
  Thread& self = state(thread);
  const std::size_t first = actor(thread, Part::kSelf);
  for (std::size_t n = kFirstEngine; n < kParts; ++n) raise(self.finished[n], (*from)[first + n]);
  const Source source = {from};
  if (!has_learnt(self, source)) learn(self, source, *from);
}

void Races::acquire_work(int thread, int first_thread, int warps, Part part, std::uint32_t time) {
  Thread& self = state(thread);
  if ((thread - first_thread) % 32 == 0) raise(self.finished[index(part)], time);
  const Source source = {nullptr, actor(first_thread, part), time};
  if (has_learnt(self, source)) return;
  Clock work(self.known->size());
  for (int warp = 0; warp < warps; ++warp) work[actor(first_thread + warp * 32, part)] = time;
  learn(self, source, work);
}

std::shared_ptr<Races::Clock> Races::join_known(int first_thread, int threads) const {
  const std::shared_ptr<Clock>& first = state(first_thread).known;
  bool is_shared = first.use_count() == threads;  // nobody else has it: it may become theirs
  std::shared_ptr<Clock> all = first;
  const Clock* last = first.get();
  for (int thread = first_thread; thread < first_thread + threads; ++thread) {
    const std::shared_ptr<Clock>& known = state(thread).known;
    if (known.get() == last) continue;
    if (all == first) all = std::make_shared<Clock>(*first);
    is_shared = false;
    last = known.get();
    join(*all, *last);
  }
  return is_shared || all != first ? all : std::make_shared<Clock>(*first);
}

void Races::meet(int first_thread, int threads) {
  const std::shared_ptr<Clock> all = join_known(first_thread, threads);
  for (int thread = first_thread; thread < first_thread + threads; ++thread) {
    tell_own(thread, *all);
    state(thread).known = all;
  }
}

void Races::meet_after_reads(int first_thread, int threads) {
  const int end = first_thread + threads;
  for (int thread = first_thread, next = thread; thread < end; thread = next) {
    std::shared_ptr<Clock> known = state(thread).known;
    while (next < end && state(next).known == known) ++next;
    if (known.use_count() != next - thread + 1) known = std::make_shared<Clock>(*known);
    for (int other = first_thread; other < end; ++other)
      raise((*known)[actor(other, Part::kReads)], state(other).time[index(Part::kReads)]);
    for (int same = thread; same < next; ++same) state(same).known = known;
  }
  for (int thread = first_thread; thread < end; ++thread) ++state(thread).time[index(Part::kReads)];
}

void Races::finish_groups(int thread, Part part, std::uint32_t last) {
  raise(state(thread).finished[index(part)], last);
}

}  // namespace emulation
