// Stand-in for templates/arch/copy/mbarrier.cuh: arrivals and bytes that are missing, all arrivals
// that are expected, and the phase. Copies of a thread land at the latest when it arrives after
// them, boxes of the copy engine when somebody waits for them.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

struct Mbarrier {
  u32 address;
  struct State {
    int bytes;
    unsigned missing : 12, expected : 12, phases : 8;
  };
  static_assert(sizeof(State) == 8);

  void init(int arrivals) const {
    ::emulation::begin_mbarrier(address, sizeof(State));
    const auto count = static_cast<unsigned>(arrivals);
    state() = {0, count & 0xfff, count & 0xfff, 0};
  }
  void arrive() const { arrive_expecting(0); }
  void arrive_expecting(int bytes) const {
    ::emulation::release_to(address);
    count_arrival(bytes);
  }
  /// By the copy engine.
  void receive(int bytes) const {
    ::emulation::release_to(address);
    state().bytes -= bytes;
    end_phase();
  }
  void arrive_after_copies() const {
    ::emulation::commit_work(::emulation::Engine::kCopies);
    ::emulation::land_copies();
    ::emulation::release_copies_to(address);
    count_arrival(0);
  }
  void wait(u32 parity) const {
    const auto begin = state().phases;
    while (state().phases % 2 == parity) {
      if (state().phases != begin)
        ::emulation::fail("a phase was over before the end of the one before was seen");
      ::emulation::land_loads(address);
      if (state().phases % 2 == parity) ::emulation::yield();
    }
    ::emulation::acquire_from(address);
  }

 private:
  void count_arrival(int bytes) const {
    if (state().missing == 0) ::emulation::fail("more arrivals than a barrier expects");
    state().bytes += bytes;
    --state().missing;
    end_phase();
  }
  State& state() const {
    return *reinterpret_cast<State*>(::emulation::shared_memory(address, sizeof(State)));
  }
  void end_phase() const {
    if (state().missing > 0 || state().bytes != 0) return;
    state().missing = state().expected;
    state().phases = (state().phases + 1) & 0xff;
    ::emulation::complete_phase(address);
  }
};

inline void fence_mbarrier_init() {}

}  // namespace lacuna
