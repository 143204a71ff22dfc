#include "runtime/group/traffic.hpp"

#include <algorithm>

namespace lacuna::group {
namespace {

/// Runs of these heads, of the tokens that the ranges have of `tokens`.
void add_runs(Run run, const LaunchShape& shape, Range heads, Range tokens,
              const std::vector<Range>& ranges, std::vector<Run>& runs) {
  for (run.b = 0; run.b < shape.n_b; ++run.b) {
    for (run.head = heads.begin; run.head < heads.end; ++run.head) {
      for (const Range& range : ranges) {
        run.tokens = intersect(range, tokens);
        if (!run.tokens.empty()) runs.push_back(run);
      }
    }
  }
}

/// Numbers in heads x tokens that a share lacks.
std::size_t missing(Range heads, Range tokens, Range held_heads, const std::vector<Range>& held) {
  std::size_t rows = 0;
  for (const Range& range : held)
    rows += static_cast<std::size_t>(intersect(range, tokens).count());
  return static_cast<std::size_t>(heads.count()) * static_cast<std::size_t>(tokens.count()) -
         static_cast<std::size_t>(intersect(heads, held_heads).count()) * rows;
}

/// The chunk that brings a KV head to the rank of these pieces.
int chunk_of(const std::vector<Piece>& pieces, std::int32_t kv_head, const LaunchShape& shape) {
  for (const Piece& piece : pieces) {
    if (kv_heads_of(piece.heads, shape).contains({kv_head, kv_head + 1})) return piece.chunk;
  }
  return 0;
}

}  // namespace

Range Traffic::kv_heads(int rank) const {
  Range all;
  for (const Piece& piece : pieces_of(rank)) {
    const Range heads = kv_heads_of(piece.heads, problem.shape);
    all =
        all.empty() ? heads : Range{std::min(all.begin, heads.begin), std::max(all.end, heads.end)};
  }
  return all;
}

std::vector<Run> Traffic::inputs(int from, int to) const {
  std::vector<Run> runs;
  const Share& held = share(from);
  const Range heads = intersect(kv_heads(to), held.heads_kv);
  for (std::int32_t head = heads.begin; head < heads.end; ++head) {
    const int chunk = chunk_of(pieces_of(to), head, problem.shape);
    for (const TensorId tensor : {TensorId::kK, TensorId::kV})
      add_runs(Run{.tensor = tensor, .chunk = chunk}, problem.shape, {head, head + 1},
               {0, problem.shape.n_k}, held.k, runs);
  }
  for (std::size_t p = 0; p < pieces_of(to).size(); ++p) {
    const Piece& piece = pieces_of(to)[p];
    add_runs(Run{.tensor = TensorId::kQ, .piece = p, .chunk = piece.chunk}, problem.shape,
             intersect(piece.heads, held.heads), piece.q, held.q, runs);
  }
  return runs;
}

std::vector<Run> Traffic::outputs(int from, int to) const {
  std::vector<Run> runs;
  const Share& held = share(to);
  for (std::size_t p = 0; p < pieces_of(from).size(); ++p) {
    const Piece& piece = pieces_of(from)[p];
    const Range heads = intersect(piece.heads, held.heads);
    const auto add = [&](TensorId tensor) {
      const int chunk = results_at_end ? chunks - 1 : piece.chunk;
      add_runs(Run{.tensor = tensor, .piece = p, .chunk = chunk}, problem.shape, heads, piece.q,
               held.q, runs);
    };
    add(TensorId::kO);
    if (problem.lse) add(TensorId::kLse);
  }
  return runs;
}

bool Traffic::results_wait_for(int rank, std::size_t launch, int chunk) const {
  const std::vector<Piece>& own = pieces_of(rank);
  if (results_at_end) return chunk + 1 == chunks && launch + 1 < own.size();
  return !own[launch].early && own[launch].chunk == chunk;
}

std::size_t Traffic::bytes_of(const std::vector<Run>& runs) const {
  std::size_t bytes = 0;
  for (const Run& run : runs) bytes += problem.bytes_of(run.tensor, run.tokens.count());
  return bytes;
}

bool Traffic::has_outputs() const {
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      if (from != to && !outputs(from, to).empty()) return true;
    }
  }
  return false;
}

bool Traffic::ends_with_own_results() const {
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      if (from == to) continue;
      const std::vector<Run> runs = outputs(from, to);
      const bool sends_last = std::ranges::any_of(
          runs, [&](const Run& run) { return run.piece + 1 == pieces_of(from).size(); });
      if (sends_last) return false;
    }
  }
  return true;
}

std::size_t Traffic::least_bytes() const {
  std::size_t bytes = 0;
  const std::size_t results =
      problem.row_bytes(TensorId::kO) + (problem.lse ? problem.row_bytes(TensorId::kLse) : 0);
  for (int rank = 0; rank < size(); ++rank) {
    const Share& held = share(rank);
    bytes += 2 * problem.row_bytes(TensorId::kK) *
             missing(kv_heads(rank), {0, problem.shape.n_k}, held.heads_kv, held.k);
    for (const Piece& piece : pieces_of(rank)) {
      bytes += (problem.row_bytes(TensorId::kQ) + results) *
               missing(piece.heads, piece.q, held.heads, held.q);
    }
  }
  return bytes * static_cast<std::size_t>(problem.shape.n_b);
}

}  // namespace lacuna::group
