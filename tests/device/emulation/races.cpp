#include "tests/device/emulation/races.hpp"

#include <algorithm>
#include <sstream>

/// Where the linker has put the executable: places count from there, for addr2line.
extern "C" const char __executable_start;  // NOLINT(bugprone-reserved-identifier): the linker's

namespace emulation {
namespace {

constexpr const char* kNames[] = {"", "", "'s copy", "'s product", "'s store", "'s load"};

constexpr std::size_t kFirstEngine = static_cast<std::size_t>(Part::kCopies);

std::uint32_t warp_of(std::uint32_t actor) { return actor / (kParts * 32); }

void raise(std::uint32_t& time, std::uint32_t to) { time = std::max(time, to); }

void join(Races::Clock& to, const Races::Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t n = 0; n < from.size(); ++n) raise(to[n], from[n]);
}

}  // namespace

Races::Races(int threads, std::span<const unsigned char> smem)
    : smem_(smem), threads_(static_cast<std::size_t>(threads)), bytes_(smem.size()) {
  const auto nothing = std::make_shared<Clock>(threads_.size() * kParts);
  for (Thread& thread : threads_) {
    thread.known = nothing;
    std::ranges::fill(thread.time, 1);
  }
}

void Races::exempt(std::size_t address, std::size_t bytes) {
  for (std::size_t n = address; n < std::min(address + bytes, bytes_.size()); ++n)
    bytes_[n].is_exempt = true;
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
  for (std::size_t n = address; n < std::min(address + bytes, bytes_.size()); ++n)
    note_byte(thread, part, access, n, event);
}

void Races::note_byte(int thread, Part part, Access access, std::size_t address,
                      const Event& event) {
  Byte& byte = bytes_[address];
  if (byte.is_exempt) return;
  const bool both_atomic = byte.write.is_atomic && event.is_atomic;
  if (byte.write.time != 0 && !both_atomic && !knows(thread, part, byte.write)) {
    const bool is_one_instruction =
        byte.write.place == event.place && warp_of(byte.write.actor) == warp_of(event.actor);
    if (access == Access::kWrite && is_one_instruction) {
      agreed_.push_back({address, smem_[address], event, byte.write});
    } else {
      tell(address, access, event, byte.write, true);
    }
  }
  if (access == Access::kRead) {
    if (!byte.reads.empty() && byte.reads.back().actor == event.actor &&
        byte.reads.back().time == event.time)
      return;
    // Who comes after this read comes after those that it comes after.
    std::erase_if(byte.reads, [&](const Event& read) { return knows(thread, part, read); });
    byte.reads.push_back(event);
    return;
  }
  for (const Event& read : byte.reads)
    if (!knows(thread, part, read)) tell(address, access, event, read, false);
  byte.reads.clear();
  byte.write = event;
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
                 bool before_was_write) {
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
       << who(before) << (before_was_write ? " writes" : " reads") << where(before)
       << ", in no order";
  report_ = text.str();
}

void Races::tell_own(int thread, Clock& to) {
  Thread& self = state(thread);
  const std::size_t first = actor(thread, Part::kSelf);
  for (std::size_t n = 0; n < kFirstEngine; ++n) raise(to[first + n], self.time[n]++);
  for (std::size_t n = kFirstEngine; n < kParts; ++n) raise(to[first + n], self.finished[n]);
}

void Races::release(int thread, Clock& to) {
  join(to, *state(thread).known);
  tell_own(thread, to);
}

void Races::release_work(int thread, Part part, std::uint32_t time, Clock& to) const {
  to.resize(threads_.size() * kParts);
  raise(to[actor(thread, part)], time);
}

void Races::acquire(int thread, const Clock& from) {
  if (from.empty()) return;
  Thread& self = state(thread);
  const std::size_t first = actor(thread, Part::kSelf);
  for (std::size_t n = kFirstEngine; n < kParts; ++n) raise(self.finished[n], from[first + n]);
  const Clock& known = *self.known;
  bool is_news = false;
  for (std::size_t n = 0; n < from.size() && !is_news; ++n) is_news = from[n] > known[n];
  if (!is_news) return;
  Clock joined = known;
  join(joined, from);
  // Lanes learn the same, one after the other.
  if (learnt_ == nullptr || *learnt_ != joined)
    learnt_ = std::make_shared<Clock>(std::move(joined));
  self.known = learnt_;
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
