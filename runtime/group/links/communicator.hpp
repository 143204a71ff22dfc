// What a group asks of the links between its ranks: a table of functions, with two implementations.
// loopback: the ranks are threads of one process, memory is the host's. nccl: each rank has a GPU.
//
// Every function is called by all ranks, in the same order, and returns within the group's
// deadline: where a rank is missing or does something else, all others get an error and the group
// is lost.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

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
