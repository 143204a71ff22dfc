// launch_group: inputs come together chunk by chunk, a launch for each piece, results go where they
// belong. On a GPU all of it is enqueued on the lanes; nothing is allocated.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "runtime/group/group.hpp"
#include "runtime/group/launch/check_launch.hpp"
#include "runtime/group/launch/piece_arguments.hpp"

namespace lacuna::group {
namespace {

class GroupLaunch {
 public:
  GroupLaunch(GroupPlan& plan, const lacuna_launch_args& args, Diagnostics& diagnostics)
      : plan_(plan),
        ranks_(plan.kernel->group->communicator),
        args_(args),
        diagnostics_(diagnostics),
        device_(plan.kernel->group->engine->gpu.get()) {
    if (device_ == nullptr) return;
    const Lanes& lanes = *plan.kernel->group->lanes;
    caller_ = static_cast<CUstream>(args.stream);
    exchange_ = lanes.exchange;
    lane_[0] = caller_;
    std::ranges::copy(lanes.more, lane_.begin() + 1);
  }

  /// All inputs are asked for before any results go: ranks have to do the same in the same order.
  bool run() {
    std::optional<ContextScope> scope;
    if (device_ != nullptr) scope.emplace(*device_);
    if (!check_group_launch(plan_, args_, bound_, diagnostics_)) return false;
    const std::vector<Chunk>& chunks = plan_.schedule.chunks;
    if (!mark(caller_) || !fork() || !bring_inputs(0) || !copy_own_of_later_chunks()) return false;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      // The chunk after this one first, so that its messages are under way when the launch begins.
      if (c + 1 < chunks.size() && !bring_inputs(c + 1)) return false;
      if (!launch_chunk(c)) return false;
    }
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (plan_.schedule.has_results(c) && !return_results(c)) return false;
    }
    return join() && mark(caller_);
  }

 private:
  bool record(std::size_t signal, CUstream stream) {
    const Driver& driver = *device_->driver;
    return check_driver(driver, driver.cuEventRecord(plan_.signals[signal], stream),
                        "cuEventRecord", diagnostics_);
  }
  bool wait(CUstream stream, std::size_t signal) {
    const Driver& driver = *device_->driver;
    return check_driver(driver, driver.cuStreamWaitEvent(stream, plan_.signals[signal], 0),
                        "cuStreamWaitEvent", diagnostics_);
  }

  /// The next event of the caller's, if there are any: GroupPlan::events names them.
  bool mark(CUstream stream) {
    if (args_.stage_events == nullptr) return true;
    const Driver& driver = *device_->driver;
    auto* event = static_cast<CUevent>(args_.stage_events[marked_++]);
    return check_driver(driver, driver.cuEventRecord(event, stream), "cuEventRecord", diagnostics_);
  }

  std::size_t free_signal(std::size_t launch) const {
    return kFirstChunkSignal + plan_.schedule.chunks.size() + 2 * launch;
  }
  std::size_t done_signal(std::size_t launch) const { return free_signal(launch) + 1; }

  bool fork() {
    if (device_ == nullptr) return true;
    return record(kForkSignal, caller_) && wait(exchange_, kForkSignal);
  }

  bool join() {
    if (device_ == nullptr) return true;
    const std::size_t launches = plan_.schedule.launches.size();
    for (std::size_t n = launches - std::min(launches, kLanes); n < launches; ++n) {
      if (!wait(caller_, done_signal(n))) return false;
    }
    return record(kExchangeSignal, exchange_) && wait(caller_, kExchangeSignal);
  }

  bool bring_inputs(std::size_t c) {
    const Phase& phase = plan_.schedule.chunks[c].inputs;
    return mark(exchange_) && run_phase(phase) && mark(exchange_) &&
           (device_ == nullptr || record(kFirstChunkSignal + c, exchange_));
  }

  /// While the messages of the first chunk are under way, which need few SMs.
  bool copy_own_of_later_chunks() {
    const std::vector<Chunk>& chunks = plan_.schedule.chunks;
    return std::all_of(chunks.begin() + 1, chunks.end(),
                       [&](const Chunk& chunk) { return copy_all(chunk.own, caller_); });
  }

  /// The own copies of the first chunk come when its messages have: meanwhile those of the second
  /// begin, before the first launch takes its SMs.
  bool launch_chunk(std::size_t c) {
    const Chunk& chunk = plan_.schedule.chunks[c];
    if (c == 0) {
      if (device_ != nullptr && !wait(caller_, kFirstChunkSignal)) return false;
      if (!copy_all(chunk.own, caller_)) return false;
      if (device_ != nullptr && !record(kCopiesSignal, caller_)) return false;
    }
    for (std::size_t n = chunk.first_launch; n < chunk.last_launch; ++n) {
      if (!run_piece(n, c)) return false;
    }
    return true;
  }

  bool run_piece(std::size_t n, std::size_t chunk) {
    const std::size_t lane = n % kLanes;
    CUstream stream = lane_[lane];
    if (device_ != nullptr &&
        (!wait(stream, kCopiesSignal) || !wait(stream, kFirstChunkSignal + chunk) ||
         (n > 0 && !wait(stream, free_signal(n - 1))) || !record(free_signal(n), stream)))
      return false;
    const LaunchPlaces places{plan_, args_, bound_};
    const PieceArguments piece(places, n, stream, lane);
    return mark(stream) && launch_kernel(*plan_.kernel->kernel, piece.args, diagnostics_) &&
           mark(stream) && (args_.counts == nullptr || copy_counts(n, stream)) &&
           (device_ == nullptr || record(done_signal(n), stream));
  }

  /// Of a piece to its place among those of the whole problem.
  bool copy_counts(std::size_t n, CUstream stream) {
    const Piece& piece = plan_.schedule.launches[n].piece;
    const BoundTensor& whole = bound_[TensorRole::kCounts];
    constexpr std::size_t kTileBytes = 3 * sizeof(std::int32_t);
    const auto tile_q = plan_.tensors.tile_q;
    const auto heads = static_cast<std::size_t>(piece.heads.count());
    const auto heads_of_whole = static_cast<std::size_t>(whole.extent[1]);
    const std::size_t to_pitch = static_cast<std::size_t>(whole.extent[2]) * kTileBytes;
    const std::size_t from_pitch =
        static_cast<std::size_t>((piece.q.count() + tile_q - 1) / tile_q) * kTileBytes;
    auto* to = static_cast<unsigned char*>(whole.data) +
               static_cast<std::size_t>(piece.heads.begin) * to_pitch +
               static_cast<std::size_t>(piece.q.begin / tile_q) * kTileBytes;
    const auto* from = static_cast<const unsigned char*>(args_.workspace) + plan_.counts_offset[n];
    for (std::int64_t b = 0; b < whole.extent[0]; ++b) {
      if (!copy_lines({to, from, to_pitch, from_pitch, from_pitch, heads}, stream)) return false;
      to += heads_of_whole * to_pitch;
      from += heads * from_pitch;
    }
    return true;
  }

  bool return_results(std::size_t c) {
    const Chunk& chunk = plan_.schedule.chunks[c];
    for (std::size_t n = chunk.first_launch; n < chunk.last_launch && device_ != nullptr; ++n) {
      if (!wait(exchange_, done_signal(n))) return false;
    }
    const Phase& phase = chunk.outputs;
    return mark(exchange_) &&
           (plan_.schedule.results_travel ? run_phase(phase) : copy_all(phase.after, exchange_)) &&
           mark(exchange_);
  }

  bool run_phase(const Phase& phase) {
    if (!copy_all(phase.before, exchange_)) return false;
    const LaunchPlaces places{plan_, args_, bound_};
    const Problem& problem = plan_.traffic.problem;
    // A rank without messages takes part, too, so that every launch notices a rank that is lost.
    plan_.messages.clear();
    for (const Post& post : phase.posts) {
      plan_.messages.push_back(
          {places.address_of(post.tensor, post.place),
           static_cast<std::size_t>(post.rows) * problem.row_bytes(post.tensor), post.peer,
           post.is_send});
    }
    return ranks_.exchange(ranks_.state.get(), plan_.messages, exchange_, diagnostics_) &&
           copy_all(phase.after, exchange_);
  }

  bool copy_all(const std::vector<Copy>& copies, CUstream stream) {
    return std::ranges::all_of(copies, [&](const Copy& one) { return copy(one, stream); });
  }

  /// Rows, or whole heads of rows, that lie `pitch` bytes apart.
  struct Lines {
    unsigned char* to;
    const unsigned char* from;
    std::size_t to_pitch, from_pitch, width, count;
  };

  bool copy(const Copy& copy, CUstream stream) {
    const LaunchPlaces places{plan_, args_, bound_};
    const std::size_t width = plan_.traffic.problem.row_bytes(copy.tensor);
    const auto step = [&](const Place& place) {
      return place.in_workspace ? copy.buffer_step : places.head_step_of(copy.tensor);
    };
    Lines lines{places.address_of(copy.tensor, copy.to),
                places.address_of(copy.tensor, copy.from),
                places.pitch_of(copy.tensor, copy.to),
                places.pitch_of(copy.tensor, copy.from),
                width,
                static_cast<std::size_t>(copy.rows)};
    if (lines.to_pitch == width && lines.from_pitch == width) {
      return copy_lines({lines.to, lines.from, step(copy.to), step(copy.from), width * lines.count,
                         static_cast<std::size_t>(copy.heads)},
                        stream);
    }
    for (std::int32_t head = 0; head < copy.heads; ++head) {
      if (!copy_lines(lines, stream)) return false;
      lines.to += step(copy.to);
      lines.from += step(copy.from);
    }
    return true;
  }

  bool copy_lines(const Lines& lines, CUstream stream) {
    if (device_ == nullptr) {
      for (std::size_t n = 0; n < lines.count; ++n)
        std::memcpy(lines.to + n * lines.to_pitch, lines.from + n * lines.from_pitch, lines.width);
      return true;
    }
    const Driver& driver = *device_->driver;
    const auto target = reinterpret_cast<CUdeviceptr>(lines.to);
    const auto source = reinterpret_cast<CUdeviceptr>(lines.from);
    if (lines.count == 1) {
      return check_driver(driver, driver.cuMemcpyDtoDAsync(target, source, lines.width, stream),
                          "cuMemcpyDtoDAsync", diagnostics_);
    }
    CUmemcpy2D copy;
    copy.source = source, copy.source_pitch = lines.from_pitch;
    copy.target = target, copy.target_pitch = lines.to_pitch;
    copy.width_bytes = lines.width, copy.height = lines.count;
    return check_driver(driver, driver.cuMemcpy2DAsync(&copy, stream), "cuMemcpy2DAsync",
                        diagnostics_);
  }

  GroupPlan& plan_;
  const Communicator& ranks_;
  const lacuna_launch_args& args_;
  Diagnostics& diagnostics_;
  const Device* device_;
  BoundLaunch bound_;
  CUstream caller_ = nullptr, exchange_ = nullptr;
  std::array<CUstream, kLanes> lane_{};
  std::size_t marked_ = 0;
};

}  // namespace

std::vector<std::string> event_names(const Schedule& schedule) {
  std::vector<std::string> names = {"begin"};
  const auto add = [&](const std::string& what, std::size_t number) {
    names.push_back(what + " " + std::to_string(number) + " begins");
    names.push_back(what + " " + std::to_string(number) + " ends");
  };
  add("inputs", 0);
  for (std::size_t c = 0; c < schedule.chunks.size(); ++c) {
    if (c + 1 < schedule.chunks.size()) add("inputs", c + 1);
    for (std::size_t n = schedule.chunks[c].first_launch; n < schedule.chunks[c].last_launch; ++n)
      add("launch", n);
  }
  for (std::size_t c = 0; c < schedule.chunks.size(); ++c) {
    if (schedule.has_results(c)) add("results", c);
  }
  names.emplace_back("end");
  return names;
}

bool launch_group(GroupPlan& plan, const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const Communicator& ranks = plan.kernel->group->communicator;
  if (ranks.is_capturing(ranks.state.get(), args.stream)) {
    Diagnostic d;
    d.code = Code::kCallArgument;
    d.message = "kernel " + plan.tensors.kernel +
                ", stream: is being captured; a group watches its exchange from the host, so it "
                "cannot be part of a graph";
    diagnostics.add(std::move(d));
    return false;
  }
  if (GroupLaunch(plan, args, diagnostics).run()) return true;
  ranks.abandon(ranks.state.get(), diagnostics.items.front().message);
  return false;
}

}  // namespace lacuna::group
