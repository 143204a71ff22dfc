// The copy engine's view of a tensor, and boxes of it in swizzled shared memory (TMA).
#pragma once

#include <array>
#include <cstdint>

namespace emulation {

inline constexpr int kBoxRank = 5;
using BoxCoordinates = std::array<int, kBoxRank>;  ///< innermost first

/// What stands in the 128 bytes of a tensor map here.
struct BoxMap {
  unsigned char* data;
  std::array<std::uint64_t, kBoxRank> extents;
  std::array<std::uint64_t, kBoxRank> stride_bytes;  ///< the first: of an element
  std::array<std::uint32_t, kBoxRank> box;
  int swizzle_bytes;  ///< 64 or 128

  int bytes() const;
};
static_assert(sizeof(BoxMap) <= 128);

/// In place of the driver's cuTensorMapEncodeTiled; 0 is success.
int encode_box_map(void* map, int element, std::uint32_t rank, void* address,
                   const std::uint64_t* extents, const std::uint64_t* stride_bytes,
                   const std::uint32_t* box, const std::uint32_t* element_strides, int interleave,
                   int swizzle, int l2_promotion, int fill);

/// Where a byte lies whose address without a permutation is `address`: chunks of 16 bytes change
/// places within lines of 64 or 128, by bits 7 and up of the address.
inline std::uint32_t swizzled(std::uint32_t address, int line_bytes) {
  const std::uint32_t phases = line_bytes == 128 ? 7 : 3;
  return address ^ (address >> 7 & phases) << 4;
}

/// Shared memory from `target` on := the box that begins at `at`; zeros where it is out of bounds.
/// The barrier counts its bytes: `receive` is called when it has landed.
void start_box_load(const BoxMap& map, std::uint32_t target, const BoxCoordinates& at,
                    unsigned barrier, void (*receive)(unsigned barrier, int bytes));
/// Shared memory from `target` on := `bytes` bytes, a multiple of 16 as both addresses have to be.
void start_line_load(const void* source, std::uint32_t target, int bytes, unsigned barrier,
                     void (*receive)(unsigned barrier, int bytes));
/// The box that begins at `at` := shared memory from `source` on; what is out of bounds is left
/// out.
void start_box_store(const BoxMap& map, std::uint32_t source, const BoxCoordinates& at);

}  // namespace emulation
