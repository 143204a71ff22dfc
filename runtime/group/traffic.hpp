// What travels between two ranks, in an order that both agree on: rows of a head that lie one
// behind the other in the tensors of the sender and of the receiver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/group/deal.hpp"
#include "runtime/group/layout.hpp"

namespace lacuna::group {

enum class TensorId : std::uint8_t { kQ, kK, kV, kO, kLse };
inline constexpr int kTensorCount = 5;

/// What a plan knows of a batch of sequences. Each launch says where they begin.
struct SequenceLimits {
  std::int32_t count = 0;  ///< 0: a batch of one length
  std::int32_t max_n_q = 0, max_n_k = 0;

  bool operator==(const SequenceLimits&) const = default;
};

/// A problem as all ranks describe it.
struct Problem {
  LaunchShape shape;  ///< of the whole; of sequences all tokens, in one batch entry
  Layout layout;
  bool lse = false;      ///< launches pass an lse
  bool strided = false;  ///< rows of q, k, v and o do not lie one behind the other
  int head_dim = 0, element_bytes = 0;
  SequenceLimits sequences{};

  /// What a kernel is launched with where it takes a part of `shape`.
  LaunchShape launch_shape(LaunchShape part) const {
    if (sequences.count == 0) return part;
    return {sequences.count, part.n_h, part.n_h_kv, sequences.max_n_q, sequences.max_n_k};
  }
  std::size_t row_bytes(TensorId tensor) const {
    return tensor == TensorId::kLse
               ? sizeof(float)
               : static_cast<std::size_t>(head_dim) * static_cast<std::size_t>(element_bytes);
  }
  std::size_t bytes_of(TensorId tensor, std::int32_t rows) const {
    return static_cast<std::size_t>(rows) * row_bytes(tensor);
  }
};

/// Tokens of one head of one batch entry, all numbered in the whole.
struct Run {
  TensorId tensor = TensorId::kQ;
  std::size_t piece = 0;  ///< of the rank that computes (Q, O, LSE)
  std::int32_t b = 0, head = 0;
  Range tokens{};
  int chunk = 0;  ///< of the exchange that it is part of
};

struct Traffic {
  Problem problem;
  std::vector<Share> shares;
  std::vector<std::vector<Piece>> pieces;  ///< of each rank, in the order of their launches
  int chunks = 1;                          ///< that the exchange has
  /// All results travel together, under the last launch of each rank, which has none to send.
  bool results_at_end = false;
  /// What arrives does so in the buffers of a rank, into which others write.
  bool by_copies = false;

  int size() const { return static_cast<int>(shares.size()); }
  const Share& share(int rank) const { return shares[static_cast<std::size_t>(rank)]; }
  const std::vector<Piece>& pieces_of(int rank) const {
    return pieces[static_cast<std::size_t>(rank)];
  }
  /// The KV heads that a rank computes with; empty if it computes nothing.
  Range kv_heads(int rank) const;

  /// What rank `to` needs of what rank `from` holds; the same for both being one.
  std::vector<Run> inputs(int from, int to) const;
  /// What rank `from` has computed of what rank `to` holds.
  std::vector<Run> outputs(int from, int to) const;

  /// Whether the results of a chunk are sent only when this launch of a rank is done.
  bool results_wait_for(int rank, std::size_t launch, int chunk) const;

  std::size_t bytes_of(const std::vector<Run>& runs) const;
  /// Whether a rank has results that another one holds.
  bool has_outputs() const;
  /// Whether the last launch of every rank leaves all its results with the rank.
  bool ends_with_own_results() const;
  /// The least that has to travel: what each rank needs, less what it holds, and the same of
  /// results.
  std::size_t least_bytes() const;
};

}  // namespace lacuna::group
