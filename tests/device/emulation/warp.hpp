// Exchanges of values inside a warp.
#pragma once

#include <bit>
#include <cstdint>

namespace emulation {

int lane_index();

/// The bits that `source` gives, a lane's number.
std::uint32_t exchange_bits(std::uint32_t bits, int source);

/// One bit for each lane.
std::uint32_t ballot(bool vote);

/// The value that lane `source` gives.
template <class T>
T exchange(T value, int source) {
  static_assert(sizeof(T) == sizeof(std::uint32_t));
  return std::bit_cast<T>(exchange_bits(std::bit_cast<std::uint32_t>(value), source));
}

}  // namespace emulation
