// Stand-in for templates/arch/mbarrier.cuh: arrivals that are missing, all that are expected, and
// the phase. Copies of a thread land at the latest when it arrives after them.
#pragma once

#include "base/ints.cuh"

namespace lacuna {

struct Mbarrier {
  u32 address;
  struct State {
    short missing, expected;
    int phases;
  };

  void init(int arrivals) const {
    state() = {static_cast<short>(arrivals), static_cast<short>(arrivals), 0};
  }
  void arrive() const {
    if (--state().missing > 0) return;
    state().missing = state().expected;
    ++state().phases;
  }
  void arrive_after_copies() const {
    ::emulation::commit_copies();
    ::emulation::wait_for_copies(0);
    arrive();
  }
  void wait(u32 parity) const {
    while (static_cast<u32>(state().phases) % 2 == parity) ::emulation::yield();
  }

 private:
  State& state() const {
    return *reinterpret_cast<State*>(::emulation::shared_memory(address, sizeof(State)));
  }
};

inline void fence_mbarrier_init() {}

}  // namespace lacuna
