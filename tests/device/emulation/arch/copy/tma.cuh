// Stand-in for templates/arch/copy/tma.cuh: boxes land at once, or when somebody waits for the
// barrier that counts their bytes; stores read their source at once, or when that is waited for.
#pragma once

#include "arch/copy/mbarrier.cuh"
#include "arch/copy/tensor_map.cuh"

namespace lacuna {

template <L2Policy kPolicy>
inline unsigned long long l2_policy() {
  return 0;
}

inline ::emulation::BoxMap box_map(const TensorMap& map) {
  ::emulation::BoxMap box;
  std::memcpy(&box, map.bytes, sizeof(box));
  return box;
}
inline ::emulation::BoxCoordinates coordinates(const BoxOrigin& at) {
  return {at.element, at.token, at.panel, at.head, at.batch};
}

inline void tma_load(const TensorMap& map, u32 target, Mbarrier full, const BoxOrigin& at,
                     unsigned long long) {
  ::emulation::start_box_load(
      box_map(map), target, coordinates(at), full.address,
      [](unsigned barrier, int bytes) { Mbarrier{barrier}.receive(bytes); });
}

inline void bulk_load(const void* source, u32 target, int bytes, Mbarrier full) {
  ::emulation::start_line_load(
      source, target, bytes, full.address,
      [](unsigned barrier, int received) { Mbarrier{barrier}.receive(received); });
}

inline void tma_store(const TensorMap& map, u32 source, const BoxOrigin& at) {
  ::emulation::start_box_store(box_map(map), source, coordinates(at));
}
inline void tma_store_commit() { ::emulation::commit_work(::emulation::Engine::kStores); }
inline void tma_store_wait_read() { ::emulation::wait_for_work(::emulation::Engine::kStores, 0); }

inline void fence_proxy_async() { ::emulation::fence_proxies(); }
inline void prefetch_map(const TensorMap&) {}

}  // namespace lacuna
