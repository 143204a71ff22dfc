// Stand-in for templates/arch/tagged_word.cuh.
#pragma once

#include "base/types.cuh"

namespace lacuna {

struct TaggedWord {
  u32 address;

  void init() const { write(0, 1); }
  void write(u32 value, u32 parity) const { word() = value | parity << 31; }
  u32 await(u32 parity) const {
    while (word() >> 31 != parity) ::emulation::yield();
    return word() & 0x7fffffffu;
  }

 private:
  u32& word() const {
    return *reinterpret_cast<u32*>(::emulation::shared_memory(address, sizeof(u32)));
  }
};

}  // namespace lacuna
