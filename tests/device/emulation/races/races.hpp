// Which accesses of a block to shared memory nothing puts in order: what compute-sanitizer's
// racecheck asks for, of emulated blocks. Kernels for it are compiled with the calls of the thread
// sanitizer (access_hooks.cpp); what stands in for instructions tells its own accesses.
//
// Happens-before by vector clocks. An actor is a thread, or what an engine does for it: cp.async,
// products of warpgroups, stores and loads of the copy engine. Order comes from
//
//   __syncwarp, block barriers, named barriers    all that meet; who only arrives learns nothing
//   mbarriers                                     arrivals, and loads whose bytes are counted,
//   before
//                                                 who waits for the phase
//   groups of an engine's work                    before who waits for them
//
//   shuffles, votes, matrices: what lanes meet in  their reads before it are before all they do
//   then
//
// and from nothing else: not writes from shuffles. Lanes of a warp that write one value to one
// place by one instruction are no race.
//
// Products and stores read by a way of their own: what a thread itself has written is there only
// behind its fence between proxies, whatever else puts it in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace emulation {

/// A thread itself (its reads are counted by themselves), or an engine that works for it.
enum class Part : std::uint8_t { kSelf, kReads, kCopies, kProducts, kStores, kLoads };
inline constexpr int kParts = 6;

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

class Races {
 public:
  Races(int threads, std::span<const unsigned char> smem);

  /// Bytes of shared memory; `place`: of the code, for the report.
  void note(int thread, Part part, Access access, std::size_t address, std::size_t bytes,
            const void* place);
  /// What orders others is not looked at itself.
  void exempt(std::size_t address, std::size_t bytes);

  using Clock = std::vector<std::uint32_t>;  ///< by actor: all up to this time
  /// What threads know and have done, to be handed on.
  struct Arrivals {
    Clock clock;
    std::shared_ptr<const Clock> joined;  ///< what was known to the last that has come
  };
  /// ... once all have come: it changes no more, so that those who know the same learn it once.
  using Told = std::shared_ptr<const Clock>;
  void release(int thread, Arrivals& to);
  /// The work of a part alone, up to `time`.
  /// Between proxies: of all that the thread has written so far.
  void fence(int thread);
  void release_work(int thread, Part part, std::uint32_t time, Arrivals& to) const;
  static Told told(Arrivals& arrivals);
  void acquire(int thread, const Told& from);
  /// The work of a part of the first lane of each of these warps, up to `time`.
  void acquire_work(int thread, int first_thread, int warps, Part part, std::uint32_t time);
  /// All of them know what each has done.
  void meet(int first_thread, int threads);
  /// ... what each has read.
  void meet_after_reads(int first_thread, int threads);

  /// A part's work comes in groups, by number from 1 on; the thread has waited for those up to it.
  void begin_group(int thread, Part part) { ++state(thread).time[index(part)]; }
  std::uint32_t group(int thread, Part part) const { return state(thread).time[index(part)]; }
  void finish_groups(int thread, Part part, std::uint32_t last);

  /// The first race, or "".
  const std::string& report();

 private:
  static std::size_t index(Part part) { return static_cast<std::size_t>(part); }
  static std::size_t actor(int thread, Part part) {
    return static_cast<std::size_t>(thread) * kParts + index(part);
  }

  struct Thread {
    std::shared_ptr<Clock> known;         ///< of all others; shared by those who know the same
    std::uint32_t time[kParts] = {};      ///< of what is done next
    std::uint32_t finished[kParts] = {};  ///< of the thread's own engines
    std::uint32_t fenced = 0;             ///< own writes up to this time
  };
  struct Event {
    std::uint32_t actor, time;
    const void* place;
    bool is_atomic;
  };
  /// The last write, and reads that nothing orders among themselves since. Bytes that one access
  /// has touched share it, so that it is asked once for all of them.
  struct History {
    Event write = {0, 0, nullptr, false};  ///< time 0: none
    std::vector<Event> reads;
    std::size_t most_reads = 0;  ///< before one looks which of them are still in no order
    std::size_t bytes = 0;       ///< that have this history
  };
  using HistoryIndex = std::uint32_t;
  static constexpr HistoryIndex kUntouched = 0, kExempt = 1;  ///< histories of any number of bytes

  Thread& state(int thread) { return threads_[static_cast<std::size_t>(thread)]; }
  const Thread& state(int thread) const { return threads_[static_cast<std::size_t>(thread)]; }
  bool knows(int thread, Part part, const Event& event) const;
  /// Has the same actor done the same to these bytes, of one history, since it last learnt
  /// anything, and nobody else anything?
  bool is_known(std::size_t first, std::size_t end, Access access, const Event& event) const;
  void check_write(int thread, Part part, Access access, std::size_t first, std::size_t end,
                   const Event& event);
  void check_reads(int thread, Part part, std::size_t address, const Event& event);
  void check_fence(std::size_t address, const Event& event);
  void add_read(int thread, Part part, std::size_t first, std::size_t end, const Event& event);
  void set_write(std::size_t first, std::size_t end, const Event& event);
  /// Do these bytes of it, all of one history, make it up?
  bool is_all_of(HistoryIndex history, std::size_t bytes) const;
  /// A history for these bytes, which leave the one that they have.
  HistoryIndex begin_history(std::size_t first, std::size_t end);
  void tell(std::size_t address, Access access, const Event& event, const Event& before,
            bool before_was_write, const char* fault = ", in no order");
  void check_agreed();
  void tell_own(int thread, Clock& to);
  /// Where the last lesson came from: a clock, or the work of an actor.
  struct Source {
    Told clock;
    std::size_t actor = 0;
    std::uint32_t time = 0;
    bool operator==(const Source&) const = default;
  };
  /// What a thread with this knowledge learnt from there. Both are kept, so that neither changes.
  struct Lesson {
    std::shared_ptr<Clock> known;
    Source source;
    std::shared_ptr<Clock> learnt;
  };
  /// Lanes learn the same, one after the other: has one that knew the same learnt it just now?
  bool has_learnt(Thread& self, const Source& source) const;
  void learn(Thread& self, Source source, const Clock& from);
  /// What all of them know together, to be shared by them.
  std::shared_ptr<Clock> join_known(int first_thread, int threads) const;

  /// A write that has to leave a byte as it is, which is seen once it has been done.
  struct Agreed {
    std::size_t address;
    unsigned char value;
    Event event, before;
  };

  std::span<const unsigned char> smem_;
  std::vector<Thread> threads_;
  std::vector<HistoryIndex> bytes_;
  std::vector<History> histories_;
  std::vector<HistoryIndex> unused_;  ///< of histories_
  std::vector<Agreed> agreed_;
  Lesson lesson_;  ///< the last
  std::string report_;
};

}  // namespace emulation
