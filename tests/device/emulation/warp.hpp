// Exchanges of values inside a warp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace emulation {

int lane_index();

/// A warp instruction is of all lanes: a fault for any other mask.
void check_lanes(std::uint32_t mask);

/// The bits that `source` gives, a lane's number.
std::uint32_t exchange_bits(std::uint32_t bits, int source);

/// __syncwarp: unlike others, this meeting orders what the lanes do before and after it.
void meet_in_order();

/// One bit for each lane.
std::uint32_t ballot(bool vote);

/// The value that lane `source` gives.
template <class T>
T exchange(T value, int source) {
  if constexpr (sizeof(T) == 2 * sizeof(std::uint32_t)) {
    auto words = std::bit_cast<std::array<std::uint32_t, 2>>(value);
    for (std::uint32_t& word : words) word = exchange_bits(word, source);
    return std::bit_cast<T>(words);
  } else {
    return std::bit_cast<T>(exchange_bits(std::bit_cast<std::uint32_t>(value), source));
  }
}

}  // namespace emulation
