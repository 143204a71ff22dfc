// What one rank does in a launch, with every place in memory worked out, chunk by chunk:
//
//   inputs   own copies, messages     K, V and Q of its pieces come together
//   launches own copies               a kernel's launch for each piece; O and LSE that the rank
//   holds outputs  messages                 O and LSE that others hold
//
// What a rank holds whole is used where it lies. Early launches wait for no messages:
//
//   inputs 0 | early | inputs 1 | of chunk 0 | inputs 2 | of chunk 1 | ... | early | results
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
  /// Of inputs that are sent and of results that are received: where they lie in the peer's
  /// buffers.
  std::size_t peer_offset = 0;
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
  std::vector<Copy> own_results;  ///< that the rank holds itself, from buffers
};

struct Chunk {
  std::vector<Copy> own;  ///< inputs that the rank holds itself, where they had to be brought
                          ///< together with others'
  Phase inputs, outputs;
};

/// A step of a launch of the group, in the order in which the host asks for them.
struct Step {
  enum Kind : std::uint8_t { kInputs, kLaunch, kResults } kind;
  std::size_t number;  ///< of the chunk, or of the launch
};

struct Schedule {
  std::vector<Chunk> chunks;
  std::vector<PieceLaunch> launches;
  std::vector<Step> steps;
  bool results_travel = false;   ///< of some rank; then all ranks take part
  bool results_at_end = false;   ///< those of all chunks with the last one's
  std::size_t buffer_bytes = 0;  ///< of the workspace, or of memory that ranks share

  std::size_t most_posts() const;
  /// Whether others' inputs, or results, may travel while this launch is computed.
  bool has_exchange_beside(std::size_t launch) const;
};

/// Parts of the workspace begin at multiples of this.
inline constexpr std::size_t kBufferAlignment = 256;

/// Messages with a peer are in its order, too.
Schedule schedule_rank(const Traffic& traffic, int rank);

/// Fills Post::peer_offset, for an exchange by copies: inputs are written into buffers of others
/// and results read from them.
void find_peer_offsets(const Traffic& traffic, int rank, Schedule& schedule);

/// Bytes that the schedule sends.
std::size_t sent_bytes(const Schedule& schedule, const Problem& problem);

}  // namespace lacuna::group
