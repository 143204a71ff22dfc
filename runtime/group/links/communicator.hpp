// What a group asks of the links between its ranks: a table of functions, with two implementations.
// loopback: the ranks are threads of one process, memory is the host's. nccl: each rank has a GPU.
//
// Two ways of exchange: messages, which all ranks send and receive at once, and copies into and out
// of memory that ranks of one host share, with flags that say what has come.
//
// Every function but set_flag and await_flag is called by all ranks, in the same order, and returns
// within the group's deadline: where a rank is missing or does something else, all others get an
// error and the group is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna::group {

/// Bytes that go to or come from a peer. The n-th one that a rank sends to a peer is the n-th one
/// that the peer receives from it.
struct Message {
  void* data = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  bool is_send = false;
};

/// Memory of each rank, as this rank addresses it. A rank's own lives at least as long as this.
struct SharedBuffer {
  std::vector<unsigned char*> of_rank;
  std::shared_ptr<void> owner;
};

/// Flags that each rank has of each other one, which sets them; its streams wait for them.
inline constexpr std::size_t kFlags = 64;

struct Communicator {
  int rank = 0, size = 1;
  std::shared_ptr<void> state;

  /// All messages at once, in the order of `stream`. Loopback: done on return.
  bool (*exchange)(void* state, std::span<const Message> messages, void* stream,
                   Diagnostics& diagnostics) = nullptr;
  /// `bytes` of each rank, in host memory, to all of them, in order of the ranks. Waits. `what`
  /// names the call, which is the same on all ranks.
  bool (*all_gather)(void* state, const char* what, const void* mine, std::size_t bytes, void* all,
                     Diagnostics& diagnostics) = nullptr;
  /// Says in `connected`, alike on all ranks, whether each reaches the memory of the others and all
  /// of them want to: only then they may call the next three.
  bool (*connect)(void* state, bool wants, bool& connected, Diagnostics& diagnostics) = nullptr;
  /// `bytes` of each rank. Waits.
  bool (*share)(void* state, std::size_t bytes, SharedBuffer& buffer,
                Diagnostics& diagnostics) = nullptr;
  /// In the order of `stream`: sets a flag that a peer has of this rank, behind what the stream has
  /// written. Values of a flag never fall.
  bool (*set_flag)(void* state, int peer, std::size_t flag, std::uint32_t value, void* stream,
                   Diagnostics& diagnostics) = nullptr;
  /// In the order of `stream`: waits until a flag that this rank has of a peer has the value or a
  /// higher one. Loopback: on return it has.
  bool (*await_flag)(void* state, int peer, std::size_t flag, std::uint32_t value, void* stream,
                     Diagnostics& diagnostics) = nullptr;
  /// Waits until `stream` has run, or the deadline has passed.
  bool (*synchronize)(void* state, void* stream, Diagnostics& diagnostics) = nullptr;
  /// Whether `stream` is being captured into a graph.
  bool (*is_capturing)(void* state, void* stream) = nullptr;
  /// This rank leaves with an error: the others are to know.
  void (*abandon)(void* state, const std::string& reason) = nullptr;
};

/// kGroupLost.
inline void add_lost(std::string message, Diagnostics& diagnostics) {
  Diagnostic d;
  d.code = Code::kGroupLost;
  d.message = std::move(message);
  diagnostics.add(std::move(d));
}

}  // namespace lacuna::group
