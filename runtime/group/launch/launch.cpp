// launch_group: inputs come together chunk by chunk, a launch for each piece, results go where they
// belong. On a GPU all of it is enqueued on the lanes; nothing is allocated.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "runtime/group/group.hpp"
#include "runtime/group/launch/check_launch.hpp"
#include "runtime/group/launch/copies.hpp"
#include "runtime/group/launch/exchange.hpp"

namespace lacuna::group {
namespace {

class GroupLaunch {
 public:
  GroupLaunch(GroupPlan& plan, const lacuna_launch_args& args, Diagnostics& diagnostics)
      : plan_(plan),
        ranks_(plan.kernel->group->communicator),
        args_(args),
        diagnostics_(diagnostics),
        device_(plan.kernel->group->engine->gpu.get()),
        context_{plan, {plan, args, bound_}, diagnostics} {
    GroupState& group = *plan.kernel->group;
    if (context_.copies()) context_.number = ++group.launches;
    if (device_ == nullptr) return;
    caller_ = static_cast<CUstream>(args.stream);
    context_.outgoing = group.lanes->exchange;
    context_.incoming = context_.copies() ? group.lanes->incoming : group.lanes->exchange;
  }

  /// Ranks ask for the exchange in the same order.
  bool run() {
    std::optional<ContextScope> scope;
    if (device_ != nullptr) scope.emplace(*device_);
    if (!check_group_launch(plan_, args_, bound_, diagnostics_)) return false;
    if (!mark(caller_) || !fork()) return false;
    const Schedule& schedule = plan_.schedule;
    has_copied_ = schedule.launches.empty();
    for (const Step& step : schedule.steps) {
      const bool good = step.kind == Step::kInputs   ? bring_inputs(step.number)
                        : step.kind == Step::kLaunch ? run_piece(step.number)
                                                     : return_results(step.number);
      if (!good) return false;
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
    return record(kForkSignal, caller_) && wait(context_.outgoing, kForkSignal) &&
           (!context_.copies() || wait(context_.incoming, kForkSignal));
  }

  bool join() { return join_streams() && end_exchange(context_, caller_); }

  bool join_streams() {
    if (device_ == nullptr) return true;
    const std::size_t launches = plan_.schedule.launches.size();
    for (std::size_t n = launches - std::min(launches, kLanes); n < launches; ++n) {
      if (!wait(caller_, done_signal(n))) return false;
    }
    return record(kExchangeSignal, context_.outgoing) && wait(caller_, kExchangeSignal) &&
           (!context_.copies() ||
            (record(kIncomingSignal, context_.incoming) && wait(caller_, kIncomingSignal)));
  }

  bool bring_inputs(std::size_t c) {
    return mark(context_.outgoing) && exchange_inputs(context_, c) && mark(context_.incoming) &&
           (device_ == nullptr || record(kFirstChunkSignal + c, context_.incoming));
  }

  /// Before the first launch. Those of the first chunk come when its messages have, unless that
  /// launch is early: meanwhile messages of the second begin, before the launch takes its SMs.
  bool copy_own_inputs() {
    const std::vector<Chunk>& chunks = plan_.schedule.chunks;
    const bool is_early = plan_.schedule.launches.front().piece.early;
    has_copied_ = true;
    if (is_early && !copy(chunks.front().own, caller_)) return false;
    for (std::size_t c = 1; c < chunks.size(); ++c) {
      if (!copy(chunks[c].own, caller_)) return false;
    }
    if (!is_early) {
      if (device_ != nullptr && !wait(caller_, kFirstChunkSignal)) return false;
      if (!copy(chunks.front().own, caller_)) return false;
    }
    return device_ == nullptr || record(kCopiesSignal, caller_);
  }

  CUstream stream_of(std::size_t n) const {
    if (device_ == nullptr) return nullptr;
    const Lanes& lanes = *plan_.kernel->group->lanes;
    const bool is_last = plan_.schedule.results_at_end && n + 1 == plan_.schedule.launches.size();
    return is_last ? lanes.last : lanes.turns[n % kLanes];
  }

  bool run_piece(std::size_t n) {
    if (!has_copied_ && !copy_own_inputs()) return false;
    const PieceLaunch& launch = plan_.schedule.launches[n];
    const std::size_t lane = n % kLanes;
    CUstream stream = stream_of(n);
    const std::size_t arrival = kFirstChunkSignal + static_cast<std::size_t>(launch.piece.chunk);
    if (device_ != nullptr &&
        (!wait(stream, kCopiesSignal) || (!launch.piece.early && !wait(stream, arrival)) ||
         (n > 0 && !wait(stream, free_signal(n - 1))) ||
         (n >= kLanes && !wait(stream, done_signal(n - kLanes))) ||
         !record(free_signal(n), stream)))
      return false;
    const PieceArguments piece(context_.places, n, stream, lane);
    return mark(stream) && launch_kernel(*plan_.kernel->kernel, piece.args, diagnostics_) &&
           mark(stream) && copy(launch.own_results, stream) &&
           (args_.counts == nullptr || copy_counts(n, stream)) &&
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
      if (!copy_lines(device_, {to, from, to_pitch, from_pitch, from_pitch, heads}, stream,
                      diagnostics_))
        return false;
      to += heads_of_whole * to_pitch;
      from += heads * from_pitch;
    }
    return true;
  }

  bool return_results(std::size_t c) {
    for (std::size_t n = 0; n < plan_.schedule.launches.size() && device_ != nullptr; ++n) {
      if (plan_.traffic.results_wait_for(ranks_.rank, n, static_cast<int>(c)) &&
          !wait(context_.outgoing, done_signal(n)))
        return false;
    }
    return mark(context_.outgoing) && exchange_results(context_, c) && mark(context_.incoming);
  }

  bool copy(const std::vector<Copy>& copies, CUstream stream) {
    return copy_all(context_.places, copies, stream, diagnostics_);
  }

  GroupPlan& plan_;
  const Communicator& ranks_;
  const lacuna_launch_args& args_;
  Diagnostics& diagnostics_;
  const Device* device_;
  BoundLaunch bound_;
  CUstream caller_ = nullptr;
  ExchangeContext context_;
  std::size_t marked_ = 0;
  bool has_copied_ = false;  ///< what the rank itself has of the inputs
};

}  // namespace

std::vector<std::string> event_names(const Schedule& schedule) {
  constexpr std::array kNames = {"inputs ", "launch ", "results "};
  std::vector<std::string> names = {"begin"};
  for (const Step& step : schedule.steps) {
    for (const char* what : {" begins", " ends"})
      names.push_back(kNames[step.kind] + std::to_string(step.number) + what);
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
