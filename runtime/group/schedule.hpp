// What one rank does in a launch, with every place in memory worked out:
//
//   inputs   copies | messages | copies      K, V and Q of its pieces come together
//   launches                                 a kernel's launch for each piece
//   outputs  copies | messages | copies      O and LSE go to those who hold their tokens
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

/// Rows one behind the other.
struct Copy {
  TensorId tensor = TensorId::kQ;
  Place from, to;
  std::int32_t rows = 0;
};

struct Post {
  TensorId tensor = TensorId::kQ;
  Place place;
  std::int32_t rows = 0;
  int peer = 0;
  bool is_send = false;
};

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

struct Schedule {
  Phase inputs, outputs;
  std::vector<PieceLaunch> launches;
  std::size_t buffer_bytes = 0;  ///< of the workspace; a kernel's own comes behind

  std::size_t most_posts() const { return std::max(inputs.posts.size(), outputs.posts.size()); }
};

/// Parts of the workspace begin at multiples of this.
inline constexpr std::size_t kBufferAlignment = 256;

Schedule schedule_rank(const Traffic& traffic, int rank);

/// Bytes that the schedule sends.
std::size_t sent_bytes(const Schedule& schedule, const Problem& problem);

}  // namespace lacuna::group
