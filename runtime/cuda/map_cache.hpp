// Tensor maps that earlier launches of a kernel have had encoded. The driver checks all of a map
// each time it makes one; launches that follow each other mostly ask for the same few.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compiler/emit/launch_program.hpp"

namespace lacuna {

/// All that cuTensorMapEncodeTiled is told of a map and that differs between maps, innermost
/// dimension first; it has no stride for the innermost.
struct MapGeometry {
  void* data = nullptr;
  std::array<std::uint64_t, kTensorMapRank> extents{};
  std::array<std::uint64_t, kTensorMapRank - 1> stride_bytes{};
  std::array<std::uint32_t, kTensorMapRank> box{};
  int element = 0;
  int swizzle = 0;

  bool operator==(const MapGeometry&) const = default;
  bool empty() const {
    for (const std::uint64_t extent : extents) {
      if (extent == 0) return true;
    }
    return false;
  }
};

/// Each geometry has one place, which the last one to ask for it holds. For one thread at a time.
class MapCache {
 public:
  /// kTensorMapBytes bytes; null: it is not there.
  const std::byte* find(const MapGeometry& geometry) const {
    const Entry& entry = entries_[place_of(geometry)];
    return entry.geometry == geometry ? entry.map : nullptr;
  }
  /// `map`: kTensorMapBytes bytes, which are copied.
  void keep(const MapGeometry& geometry, const std::byte* map) {
    Entry& entry = entries_[place_of(geometry)];
    entry.geometry = geometry;
    std::memcpy(entry.map, map, sizeof(entry.map));
  }

 private:
  /// K and V of a hundred layers that share a kernel, and then some.
  static constexpr std::size_t kPlaces = 256;

  struct Entry {
    MapGeometry geometry;  ///< at first that of no tensor: it has no elements
    std::byte map[kTensorMapBytes];
  };

  /// Addresses are multiples of large powers of two; tensors at one address differ in a few
  /// extents.
  static std::size_t place_of(const MapGeometry& geometry) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
    const std::uint64_t key = reinterpret_cast<std::uintptr_t>(geometry.data) ^
                              geometry.extents[1] << 32 ^ geometry.extents[3] << 20 ^
                              geometry.extents[4];
    return key * kOdd >> 56;
  }
  static_assert(kPlaces == 1U << (64 - 56));

  std::array<Entry, kPlaces> entries_{};
};

}  // namespace lacuna
