// The streams of a launch of a group, and what waits for what. On the CPU there are none: what is
// called is done on return, in the same order.
//
//   caller's stream   fork | own copies |                                           | join
//   lanes                  |            | launch 0 ... | launch 1 ... | launch 2 ...
//   exchange          messages 0 | messages 1 | ...                | results 0 | ...|
//
// Launches take turns on the lanes, so that the blocks of one begin where those of others end. A
// launch may begin as soon as the launch before it may. Several that may begin at the same time
// begin in their order, because earlier lanes have higher priorities. The exchange has the highest
// priority, and launches leave multiprocessors to its messages (Schedule::has_exchange_beside).
//
// Where ranks copy into memory that they share, the exchange only writes, and a stream of its own
// waits for what others write, so that no rank writes later because another one does:
//
//   exchange          inputs 0 -> others | inputs 1 -> others | ...             | results 0 may be
//   read | ... incoming               wait for inputs 0 | wait for inputs 1 | ...    wait for
//   others' results 0, read them | ...
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/cuda/driver.hpp"

namespace lacuna::group {

/// A launch waits for the one this many before it. With fewer lanes multiprocessors would idle
/// while the last tiles of one launch are computed, although launches behind it have work for them.
inline constexpr std::size_t kLanes = 8;

/// Of a group; used by one launch after the other.
struct Lanes {
  std::shared_ptr<const Device> device;
  CUstream exchange = nullptr;
  CUstream incoming = nullptr;  ///< where ranks copy: what waits for others
  std::array<CUstream, kLanes> turns{};
  CUstream last = nullptr;  ///< of the launch under which all results travel, behind all others

  Lanes() = default;
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes();
};

/// Null with diagnostics.
std::shared_ptr<Lanes> make_lanes(const std::shared_ptr<const Device>& device,
                                  Diagnostics& diagnostics);

/// Events without times, of a plan.
class Signals {
 public:
  Signals() = default;
  Signals(std::shared_ptr<const Device> device, std::size_t count, Diagnostics& diagnostics);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  Signals(Signals&& other) noexcept = default;
  Signals& operator=(Signals&& other) noexcept = default;
  ~Signals();

  CUevent operator[](std::size_t index) const { return events_[index]; }

 private:
  std::shared_ptr<const Device> device_;
  std::vector<CUevent> events_;
};

}  // namespace lacuna::group
