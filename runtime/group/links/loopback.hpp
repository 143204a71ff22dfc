// The ranks as threads of one process: a meeting place with a deadline. The semantics are those of
// the NCCL group, so that all but speed is tested without a GPU.
//
//   rank 0   post messages   meet | copy what is for me   meet |
//   rank 1   post messages   meet | copy what is for me   meet |
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/group/links/communicator.hpp"

namespace lacuna::group {

/// Shared by the ranks.
struct Loopback {
  explicit Loopback(int ranks)
      : size(ranks),
        posts(static_cast<std::size_t>(ranks)),
        is_there(static_cast<std::size_t>(ranks)),
        has_joined(static_cast<std::size_t>(ranks)),
        has_left(static_cast<std::size_t>(ranks)),
        buffers(static_cast<std::size_t>(ranks)),
        flags(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * kFlags) {}

  /// What a rank shows to the others while they meet.
  struct Post {
    std::span<const Message> messages;
    const void* data = nullptr;
    std::size_t bytes = 0;
  };

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t round = 0;  ///< meetings that are over
  int arrived = 0;
  std::string what;    ///< the call that those who arrived make
  std::string left;    ///< which rank has gone, whom no meeting can have; "" while all are there
  std::string broken;  ///< why there are no meetings any more; "" while there are
  std::vector<Post> posts;
  int readers = 0;  ///< ranks that may still read the posts of others
  std::vector<bool> is_there, has_joined, has_left;
  std::optional<bool> by_copies;  ///< as the first rank wants; the others have to want the same
  std::vector<std::shared_ptr<unsigned char[]>> buffers;  ///< that ranks are about to share
  std::vector<std::uint32_t> flags;                       ///< [rank][rank that sets it][kFlags]
};

/// The communicator of a rank; an error if the rank is taken or not one of the loopback's.
bool join_loopback(const std::shared_ptr<Loopback>& loopback, int rank, double timeout_s,
                   Communicator& communicator, Diagnostics& diagnostics);

}  // namespace lacuna::group
