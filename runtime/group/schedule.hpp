// What one rank does in a launch, with every place in memory worked out, chunk by chunk:
//
//   inputs   own copies, messages     K, V and Q of its pieces come together
//   launches                          a kernel's launch for each piece
//   outputs  messages, own copies     O and LSE go to those who hold their tokens
//
// What a rank holds whole is used where it lies.
#pragma once

#include <vector>

#include "runtime/group/traffic.hpp"

namespace lacuna::group {

/// A row of a tensor: the caller's (numbered in the rank's share), or `offset` bytes into the
/// workspace.
struct Place {
  bool in_workspace = false;
  std::size_t offset = 0;
  std::int32_t b = 0, head = 0, row = 0;
};

/// Rows one behind the other, of one head or of several.
struct Copy {
  TensorId tensor = TensorId::kQ;
  Place from, to;
  std::int32_t rows = 0, heads = 1;
  std::size_t buffer_step = 0;  ///< bytes between heads in the workspace
};

struct Post {
  TensorId tensor = TensorId::kQ;
  Place place;
  std::int32_t rows = 0;
  int peer = 0;
  bool is_send = false;
};

/// Messages, and what is packed before and unpacked after them.
struct Phase {
  std::vector<Copy> before;
  std::vector<Post> posts;
  std::vector<Copy> after;
};

/// A tensor of a launch: [batch, heads, rows, ...] from a place on.
struct View {
  Place place;
  std::int32_t heads = 0, rows = 0;
};

struct PieceLaunch {
  Piece piece;
  View q, k, v, o, lse;
};

struct Chunk {
  std::vector<Copy> own;  ///< inputs that the rank holds itself, where they had to be brought
                          ///< together with others'
  Phase inputs, outputs;
  std::size_t first_launch = 0, last_launch = 0;  ///< [first, last)
};

struct Schedule {
  std::vector<Chunk> chunks;
  std::vector<PieceLaunch> launches;
  bool results_travel = false;   ///< of some rank; then all ranks take part
  std::size_t buffer_bytes = 0;  ///< of the workspace; the kernels' own comes behind

  std::size_t most_posts() const;
  /// Whether something is left to do with the results of a chunk.
  bool has_results(std::size_t chunk) const {
    return results_travel || !chunks[chunk].outputs.after.empty();
  }
};

/// Parts of the workspace begin at multiples of this.
inline constexpr std::size_t kBufferAlignment = 256;

Schedule schedule_rank(const Traffic& traffic, int rank);

/// Bytes that the schedule sends.
std::size_t sent_bytes(const Schedule& schedule, const Problem& problem);

}  // namespace lacuna::group
