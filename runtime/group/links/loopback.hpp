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
        has_joined(static_cast<std::size_t>(ranks)) {}

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
  std::vector<bool> is_there, has_joined;
};

/// The communicator of a rank; an error if the rank is taken or not one of the loopback's.
bool join_loopback(const std::shared_ptr<Loopback>& loopback, int rank, double timeout_s,
                   Communicator& communicator, Diagnostics& diagnostics);

}  // namespace lacuna::group
