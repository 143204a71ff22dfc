// Places of codes in the wgmma family, where keys and values are rows of e4m3 in memory. Between
// TMA and the slots that wgmma reads stand the warps of the producer, which make 16-bit rows:
//
//   first warp                                all warps that convert
//   c_empty[p]  <- one arrival a warp -----   the codes are read
//   c_full[p]   -- codes, scales, ticket -->  what to make of them
//                                             k_empty or v_empty is waited for, rows are written
//                                             k_full or v_full: one arrival a warp
//
// Places come in the order of loads, K_0 (V of the row before) K_1 V_0 K_2 V_1 ... A step without a
// tile has places, too, which stay as they are. The warps of the producer convert, and those of a
// consumer warpgroup that has no queries in the launch (WarpsOfLaunch); the first warp takes part
// before it waits for a place to be empty.
#pragma once

#include "base/ints.cuh"
#include "base/optional_field.cuh"
#include "shared/attend_block.cuh"

namespace lacuna {

/// Places of codes; 0 where keys and values are loaded as they are multiplied.
LACUNA_OPTIONAL_FIELD(int, code_places, kCodePlaces, 0)

inline constexpr int kConvertingWarps = 4;  ///< at least: the producer's warpgroup
/// Arrivals that fill a place: of the loads, and of each lane that may have copied a scale.
inline constexpr int kCodeArrivals = 1 + 32;

/// What to make of the codes in a place.
template <class Message, int kPieces>
struct CodeTicket {
  enum Flags : u32 { kValues = 1, kLoadsQueries = 2 };
  u32 flags;
  u32 row;                ///< of kLoadsQueries: its place in WgmmaControl::rows
  Message step;           ///< kEnd: there are no others
  float scales[kPieces];  ///< of kScaleRows rows each

  __device__ __forceinline__ bool has(Flags flag) const { return (flags & flag) != 0; }
};

template <int kPlaces, class Message, int kStepKeys>
struct CodeRing {
  static constexpr int kPieces = kStepKeys / kScaleRows;
  using Ticket = CodeTicket<Message, kPieces>;
  static_assert(kPlaces >= 2 && kPlaces <= kMostCodePlaces, "keys and values are under way");

  unsigned long long full[kPlaces], empty[kPlaces];
  Ticket tickets[kPlaces];
};
template <class Message, int kStepKeys>
struct CodeRing<0, Message, kStepKeys> {};

}  // namespace lacuna
