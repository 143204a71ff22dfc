#include "tests/device/emulation/box_map.hpp"

#include <cstring>

#include "runtime/cuda/cuda_types.hpp"
#include "tests/device/emulation/block.hpp"

namespace emulation {
namespace {

/// take(global byte or null, shared address) for each element of a box, in their order.
template <class Take>
void for_each_element(const BoxMap& map, std::uint32_t shared, const BoxCoordinates& at,
                      Take take) {
  const auto element_bytes = static_cast<std::uint32_t>(map.stride_bytes[0]);
  std::array<std::uint32_t, kBoxRank> n = {};
  for (std::uint32_t offset = 0; offset < static_cast<std::uint32_t>(map.bytes());
       offset += element_bytes) {
    unsigned char* element = map.data;
    for (std::size_t axis = 0; axis < kBoxRank; ++axis) {
      const auto x = static_cast<std::int64_t>(n[axis]) + at[axis];
      const bool exists = x >= 0 && static_cast<std::uint64_t>(x) < map.extents[axis];
      if (!exists) element = nullptr;
      if (element != nullptr) element += static_cast<std::uint64_t>(x) * map.stride_bytes[axis];
    }
    take(element, swizzled(shared + offset, map.swizzle_bytes));
    for (std::size_t axis = 0; axis < kBoxRank && ++n[axis] == map.box[axis]; ++axis) n[axis] = 0;
  }
}

void check_place(const BoxMap& map, std::uint32_t shared) {
  if (shared % 128 != 0) throw Fault("a box in shared memory begins at no multiple of 128");
  shared_memory(shared, static_cast<std::size_t>(map.bytes()));
}

void load_box(const BoxMap& map, std::uint32_t target, const BoxCoordinates& at) {
  check_place(map, target);
  const std::size_t bytes = map.stride_bytes[0];
  for_each_element(map, target, at, [&](const unsigned char* element, std::uint32_t address) {
    if (element == nullptr) {
      std::memset(write_shared(address, bytes), 0, bytes);
    } else {
      std::memcpy(write_shared(address, bytes), element, bytes);
    }
  });
}

void store_box(const BoxMap& map, std::uint32_t source, const BoxCoordinates& at) {
  check_place(map, source);
  const std::size_t bytes = map.stride_bytes[0];
  for_each_element(map, source, at, [&](unsigned char* element, std::uint32_t address) {
    if (element != nullptr) std::memcpy(element, read_shared(address, bytes), bytes);
  });
}

}  // namespace

int BoxMap::bytes() const {
  std::uint64_t elements = 1;
  for (const std::uint32_t extent : box) elements *= extent;
  return static_cast<int>(elements * stride_bytes[0]);
}

int encode_box_map(void* map, int element, std::uint32_t rank, void* address,
                   const std::uint64_t* extents, const std::uint64_t* stride_bytes,
                   const std::uint32_t* box, const std::uint32_t*, int, int swizzle, int, int) {
  if (rank != kBoxRank) return 1;
  BoxMap made = {};
  made.data = static_cast<unsigned char*>(address);
  made.stride_bytes[0] = element == lacuna::kTensorMapUint8 ? 1 : 2;
  for (std::size_t axis = 0; axis < kBoxRank; ++axis) {
    made.extents[axis] = extents[axis];
    made.box[axis] = box[axis];
    if (axis > 0) made.stride_bytes[axis] = stride_bytes[axis - 1];
  }
  made.swizzle_bytes = swizzle == lacuna::kTensorMapSwizzle64 ? 64 : 128;
  std::memcpy(map, &made, sizeof(made));
  return 0;
}

void start_box_load(const BoxMap& map, std::uint32_t target, const BoxCoordinates& at,
                    unsigned barrier, void (*receive)(unsigned barrier, int bytes)) {
  start_load(barrier, [map, target, at, barrier, receive] {
    load_box(map, target, at);
    receive(barrier, map.bytes());
  });
}

void start_line_load(const void* source, std::uint32_t target, int bytes, unsigned barrier,
                     void (*receive)(unsigned barrier, int bytes)) {
  if (bytes % 16 != 0 || target % 16 != 0 || reinterpret_cast<std::uintptr_t>(source) % 16 != 0)
    throw Fault("a line for shared memory is no whole number of 16 bytes, or begins elsewhere");
  const auto count = static_cast<std::size_t>(bytes);
  start_load(barrier, [source, target, count, bytes, barrier, receive] {
    std::memcpy(write_shared(target, count), source, count);
    receive(barrier, bytes);
  });
}

void start_box_store(const BoxMap& map, std::uint32_t source, const BoxCoordinates& at) {
  start_work(Engine::kStores, [map, source, at] { store_box(map, source, at); });
}

}  // namespace emulation
