#include "runtime/group/schedule.hpp"

#include <algorithm>

namespace lacuna::group {
namespace {

bool is_key(TensorId tensor) { return tensor == TensorId::kK || tensor == TensorId::kV; }

class Scheduler {
 public:
  Scheduler(const Traffic& traffic, int rank)
      : traffic_(traffic), problem_(traffic.problem), share_(traffic.share(rank)), rank_(rank) {}

  Schedule schedule() {
    schedule_.chunks.resize(static_cast<std::size_t>(traffic_.chunks));
    schedule_.results_travel = traffic_.has_outputs();
    schedule_.results_at_end = traffic_.results_at_end;
    place_tensors();
    for (int peer = 0; peer < traffic_.size(); ++peer) {
      send(traffic_.inputs(rank_, peer), peer, &Chunk::inputs);
      receive(traffic_.inputs(peer, rank_), peer, &Chunk::inputs);
      send(traffic_.outputs(rank_, peer), peer, &Chunk::outputs);
      receive(traffic_.outputs(peer, rank_), peer, &Chunk::outputs);
    }
    for (const Run& run : traffic_.inputs(rank_, rank_)) copy_own(run, chunk_of(run).own);
    for (const Run& run : traffic_.outputs(rank_, rank_))
      copy_own(run, schedule_.launches[run.piece].own_results);
    return std::move(schedule_);
  }

 private:
  std::size_t reserve(std::size_t bytes) {
    const std::size_t offset = schedule_.buffer_bytes;
    schedule_.buffer_bytes += (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    return offset;
  }

  View buffer(TensorId tensor, std::int32_t heads, std::int32_t rows) {
    const std::size_t count = static_cast<std::size_t>(problem_.shape.n_b) *
                              static_cast<std::size_t>(heads) * static_cast<std::size_t>(rows);
    return {{true, reserve(count * problem_.row_bytes(tensor))}, heads, rows};
  }

  /// Where the rank holds all of it in one go, the caller's tensor; else a buffer.
  View place(TensorId tensor, Range heads, Range tokens) {
    const Range held_heads = is_key(tensor) ? share_.heads_kv : share_.heads;
    const std::vector<Range>& held = is_key(tensor) ? share_.k : share_.q;
    const auto range = std::ranges::find_if(held, [&](Range r) { return r.contains(tokens); });
    const bool is_whole = held == std::vector<Range>{tokens} && held_heads == heads;
    const bool is_view = tensor == TensorId::kLse
                             ? is_whole  // the only one that has to lie without gaps
                             : range != held.end() && held_heads.contains(heads);
    if (!is_view) return buffer(tensor, heads.count(), tokens.count());
    return {{false, 0, 0, heads.begin - held_heads.begin, row_of(held, tokens.begin)},
            heads.count(),
            tokens.count()};
  }

  void place_tensors() {
    kv_heads_ = traffic_.kv_heads(rank_);
    if (kv_heads_.empty()) return;
    k_ = place(TensorId::kK, kv_heads_, {0, problem_.shape.n_k});
    v_ = place(TensorId::kV, kv_heads_, {0, problem_.shape.n_k});
    for (const Piece& piece : traffic_.pieces_of(rank_)) {
      const Range kv = kv_heads_of(piece.heads, problem_.shape);
      PieceLaunch launch{piece,
                         place(TensorId::kQ, piece.heads, piece.q),
                         heads_of(k_, TensorId::kK, kv),
                         heads_of(v_, TensorId::kV, kv),
                         place(TensorId::kO, piece.heads, piece.q),
                         {},
                         {}};
      if (problem_.lse) launch.lse = place(TensorId::kLse, piece.heads, piece.q);
      schedule_.launches.push_back(launch);
    }
  }

  Chunk& chunk_of(const Run& run) { return schedule_.chunks[static_cast<std::size_t>(run.chunk)]; }

  /// Some KV heads of those that the rank has brought together. The view keeps the extent of the
  /// buffer over batch entries in `heads`; its own heads are those of the piece.
  View heads_of(View all, TensorId tensor, Range kv) const {
    const std::int32_t first = kv.begin - kv_heads_.begin;
    if (all.place.in_workspace) {
      all.place.offset += static_cast<std::size_t>(first) * static_cast<std::size_t>(all.rows) *
                          problem_.row_bytes(tensor);
    } else {
      all.place.head += first;
    }
    return all;
  }

  /// The row of a buffer, or of the caller's tensor, that a run begins at on the computing side.
  Place of_piece(const Run& run) const {
    if (is_key(run.tensor)) {
      return at(run.tensor == TensorId::kK ? k_ : v_, run, run.head - kv_heads_.begin,
                run.tokens.begin);
    }
    const PieceLaunch& launch = schedule_.launches[run.piece];
    const View& view = run.tensor == TensorId::kQ   ? launch.q
                       : run.tensor == TensorId::kO ? launch.o
                                                    : launch.lse;
    return at(view, run, run.head - launch.piece.heads.begin,
              run.tokens.begin - launch.piece.q.begin);
  }

  Place at(const View& view, const Run& run, std::int32_t head, std::int32_t row) const {
    Place place = view.place;
    if (place.in_workspace) {
      const auto rows = static_cast<std::size_t>(view.rows);
      const std::size_t index =
          (static_cast<std::size_t>(run.b) * static_cast<std::size_t>(view.heads) +
           static_cast<std::size_t>(head)) *
              rows +
          static_cast<std::size_t>(row);
      place.offset += index * problem_.row_bytes(run.tensor);
    } else {
      place.b = run.b;
      place.head += head;
      place.row += row;
    }
    return place;
  }

  /// The same on the side that holds the tokens.
  Place of_share(const Run& run) const {
    const bool key = is_key(run.tensor);
    return {false, 0, run.b, run.head - (key ? share_.heads_kv : share_.heads).begin,
            row_of(key ? share_.k : share_.q, run.tokens.begin)};
  }

  bool is_result(TensorId tensor) const {
    return tensor == TensorId::kO || tensor == TensorId::kLse;
  }

  /// A message is one piece of memory; where the caller's rows are not, it goes through a buffer.
  bool has_gaps(const Run& run, const Place& place) const {
    return problem_.strided && !place.in_workspace && run.tensor != TensorId::kLse;
  }
  Place buffer_of(const Run& run) {
    return {true, reserve(problem_.bytes_of(run.tensor, run.tokens.count()))};
  }

  void send(const std::vector<Run>& runs, int peer, Phase Chunk::*phase_of) {
    if (peer == rank_) return;
    for (const Run& run : runs) {
      Phase& phase = chunk_of(run).*phase_of;
      const Place source = is_result(run.tensor) ? of_piece(run) : of_share(run);
      const Place place = has_gaps(run, source) ? buffer_of(run) : source;
      if (place.in_workspace && !source.in_workspace) add_copy(run, source, place, phase.before);
      phase.posts.push_back({run.tensor, place, run.tokens.count(), peer, true});
    }
  }

  void receive(const std::vector<Run>& runs, int peer, Phase Chunk::*phase_of) {
    if (peer == rank_) return;
    for (const Run& run : runs) {
      Phase& phase = chunk_of(run).*phase_of;
      const Place target = is_result(run.tensor) ? of_share(run) : of_piece(run);
      const bool is_elsewhere = traffic_.by_copies && !target.in_workspace;
      const Place place = is_elsewhere || has_gaps(run, target) ? buffer_of(run) : target;
      if (place.in_workspace && !target.in_workspace) add_copy(run, place, target, phase.after);
      phase.posts.push_back({run.tensor, place, run.tokens.count(), peer, false});
    }
  }

  void copy_own(const Run& run, std::vector<Copy>& copies) const {
    const Place buffer = of_piece(run), share = of_share(run);
    if (!buffer.in_workspace) return;
    const bool out = is_result(run.tensor);
    add_copy(run, out ? buffer : share, out ? share : buffer, copies);
  }

  /// Between a buffer and the rank's share. Heads that follow each other are one copy.
  static void add_copy(const Run& run, const Place& from, const Place& to,
                       std::vector<Copy>& copies) {
    const bool out = from.in_workspace;
    const Place &buffer = out ? from : to, &share = out ? to : from;
    for (Copy& copy : copies) {
      const Place& first_buffer = out ? copy.from : copy.to;
      const Place& first_share = out ? copy.to : copy.from;
      const bool follows = copy.tensor == run.tensor && copy.rows == run.tokens.count() &&
                           first_share.b == share.b && first_share.row == share.row &&
                           first_share.head + copy.heads == share.head &&
                           first_buffer.offset < buffer.offset;
      if (!follows) continue;
      const auto heads = static_cast<std::size_t>(copy.heads);
      const std::size_t step = heads == 1 ? buffer.offset - first_buffer.offset : copy.buffer_step;
      if (first_buffer.offset + heads * step != buffer.offset) continue;
      ++copy.heads;
      copy.buffer_step = step;
      return;
    }
    copies.push_back({run.tensor, from, to, run.tokens.count()});
  }

  const Traffic& traffic_;
  const Problem& problem_;
  const Share& share_;
  int rank_;
  Schedule schedule_;
  Range kv_heads_;
  View k_, v_;
};

/// The chunk behind the one that a launch waits for is asked for first, so that its messages are
/// under way when the launch begins. All inputs are asked for before any results go.
std::vector<Step> steps_of(const Schedule& schedule) {
  std::vector<Step> steps = {{Step::kInputs, 0}};
  const std::size_t chunks = schedule.chunks.size();
  std::size_t asked = 1;
  const auto ask_up_to = [&](std::size_t end) {
    for (; asked < std::min(end, chunks); ++asked) steps.push_back({Step::kInputs, asked});
  };
  for (std::size_t n = 0; n < schedule.launches.size(); ++n) {
    const Piece& piece = schedule.launches[n].piece;
    if (!piece.early) ask_up_to(static_cast<std::size_t>(piece.chunk) + 2);
    steps.push_back({Step::kLaunch, n});
  }
  ask_up_to(chunks);
  if (!schedule.results_travel) return steps;
  for (std::size_t c = schedule.results_at_end ? chunks - 1 : 0; c < chunks; ++c)
    steps.push_back({Step::kResults, c});
  return steps;
}

}  // namespace

Schedule schedule_rank(const Traffic& traffic, int rank) {
  Schedule schedule = Scheduler(traffic, rank).schedule();
  schedule.steps = steps_of(schedule);
  return schedule;
}

namespace {

/// The posts of a rank that a peer answers, in their order.
std::vector<Post*> posts_with(Phase& phase, int peer, bool is_send) {
  std::vector<Post*> posts;
  for (Post& post : phase.posts) {
    if (post.peer == peer && post.is_send == is_send) posts.push_back(&post);
  }
  return posts;
}

void match(Phase& own, Phase& of_peer, int rank, int peer) {
  const std::vector<Post*> mine = posts_with(own, peer, /*is_send=*/true),
                           theirs = posts_with(of_peer, rank, /*is_send=*/false);
  for (std::size_t n = 0; n < mine.size(); ++n) mine[n]->peer_offset = theirs[n]->place.offset;
}

}  // namespace

void find_peer_offsets(const Traffic& traffic, int rank, Schedule& schedule) {
  for (int peer = 0; peer < traffic.size(); ++peer) {
    if (peer == rank) continue;
    Schedule of_peer = schedule_rank(traffic, peer);
    for (std::size_t c = 0; c < schedule.chunks.size(); ++c) {
      match(schedule.chunks[c].inputs, of_peer.chunks[c].inputs, rank, peer);
      match(schedule.chunks[c].outputs, of_peer.chunks[c].outputs, rank, peer);
    }
  }
}

std::size_t Schedule::most_posts() const {
  std::size_t most = 0;
  for (const Chunk& chunk : chunks)
    most = std::max({most, chunk.inputs.posts.size(), chunk.outputs.posts.size()});
  return most;
}

bool Schedule::has_exchange_beside(std::size_t launch) const {
  const Piece& piece = launches[launch].piece;
  const auto waits = [](const PieceLaunch& other) { return !other.piece.early; };
  const bool is_first =
      std::none_of(launches.begin(), launches.begin() + static_cast<std::ptrdiff_t>(launch), waits);
  const auto chunk = static_cast<std::size_t>(piece.chunk);
  if (piece.early ? is_first : chunk + 1 < chunks.size()) return true;
  if (!results_travel) return false;
  return results_at_end ? launch + 1 == launches.size() : piece.early || chunk > 0;
}

std::size_t sent_bytes(const Schedule& schedule, const Problem& problem) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : schedule.chunks) {
    for (const Phase* phase : {&chunk.inputs, &chunk.outputs}) {
      for (const Post& post : phase->posts) {
        if (post.is_send) bytes += problem.bytes_of(post.tensor, post.rows);
      }
    }
  }
  return bytes;
}

}  // namespace lacuna::group
