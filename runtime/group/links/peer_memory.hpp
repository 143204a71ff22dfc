// Memory that GPUs of one host reach over their links: a rank writes into a buffer of another's
// with a copy engine of its own, which takes no multiprocessor. Flags say what has come. They lie
// in memory of the host that all ranks map:
//
//   rank 0's stream   copy -> rank 1's buffer | flag of rank 1 = 7
//   rank 1's stream                             wait for flag >= 7 | read the buffer
//
// so that a rank whose peer is lost can let its own streams go by setting its flags itself.
#pragma once

#include <functional>
#include <memory>

#include "runtime/cuda/driver.hpp"
#include "runtime/group/links/communicator.hpp"

namespace lacuna::group {

/// Communicator::all_gather of a rank.
using Gather = std::function<bool(const char* what, const void* mine, std::size_t bytes, void* all,
                                  Diagnostics& diagnostics)>;

/// A rank among others, with what it takes to reach their memory.
struct PeerRank {
  std::shared_ptr<const Device> device;
  int rank = 0, size = 1;
  Gather gather;
};

class PeerFlags {
 public:
  PeerFlags() = default;
  PeerFlags(const PeerFlags&) = delete;
  PeerFlags& operator=(const PeerFlags&) = delete;
  ~PeerFlags();

  /// Where the GPU has a flag that `rank` has of `setter`.
  CUdeviceptr address_of(int rank, int setter, std::size_t flag) const;
  /// Of a rank, among them those that its GPU waits for.
  std::uint32_t value_of(int rank, int setter, std::size_t flag) const;
  /// Lets all go that waits for flags of a rank, now and later.
  void release(int rank) const;

  /// Memory of the host under a name: made by the first rank, mapped by all. False if that fails.
  bool map(const std::string& name, bool make, int size);
  /// For the GPU of this rank. False if the driver refuses.
  bool map_to(std::shared_ptr<const Device> device);

 private:
  std::size_t index_of_flag(int rank, int setter, std::size_t flag) const;

  std::shared_ptr<const Device> device_;
  int size_ = 0;          ///< of the group
  void* host_ = nullptr;  ///< [rank][rank that sets it][kFlags]
  std::size_t bytes_ = 0;
  CUdeviceptr address_ = 0;
};

/// Flags that all ranks have mapped, or null in `flags` on all of them where one cannot reach the
/// memory of another or does not want to. False with diagnostics if a rank is lost.
bool connect_peers(const PeerRank& peers, bool wants, std::unique_ptr<PeerFlags>& flags,
                   Diagnostics& diagnostics);

/// Device memory of each rank, mapped by all of them. False on all ranks with diagnostics where one
/// has none.
bool share_memory(const PeerRank& peers, std::size_t bytes, SharedBuffer& buffer,
                  Diagnostics& diagnostics);

}  // namespace lacuna::group
