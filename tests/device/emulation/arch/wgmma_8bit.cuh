// Stand-in for templates/arch/wgmma_8bit.cuh, int8 with queries in registers: each warp multiplies
// its 16 rows when it issues. B is read as the hardware reads it: the permutation follows from the
// address.
#pragma once

#include "arch/operand_descriptor.cuh"
#include "arch/warp.cuh"

namespace lacuna {

inline void wgmma_begin() {}
inline void wgmma_commit() {}
template <int kPending>
inline void wgmma_wait() {}
template <int kBlocks>
inline void wgmma_arrived(int (&)[kBlocks][4]) {}

/// Four bytes of an operand: byte `depth` and the next three of a row.
inline u32 operand_word(unsigned long long descriptor, int row, int depth) {
  const u32 start = static_cast<u32>(descriptor & 0x3fff) << 4;
  const u32 stride = static_cast<u32>(descriptor >> 32 & 0x3fff) << 4;
  const u32 line = stride / 8;
  const u32 address = start + static_cast<u32>(row / 8) * stride +
                      static_cast<u32>(row % 8) * line + static_cast<u32>(depth);
  const u32 phases = descriptor >> 62 == 1 ? 7 : 3;  // of 128 or 64 bytes
  u32 word;
  std::memcpy(&word, ::emulation::shared_memory(address ^ (address >> 7 & phases) << 4, 4), 4);
  return word;
}

template <int kBlocks>
inline void wgmma_from_registers_s8(int (&d)[kBlocks][4], const u32 (&a)[4], unsigned long long b,
                                    bool adds) {
  for (int n = 0; n < kBlocks; ++n) {
    if (!adds)
      for (int& x : d[n]) x = 0;
    const int row = n * 8 + lane_index() / 4, depth = lane_index() % 4 * 4;
    ::emulation::multiply_s8(d[n], a, operand_word(b, row, depth),
                             operand_word(b, row, depth + 16));
  }
}

}  // namespace lacuna
