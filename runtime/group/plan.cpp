// make_group_plan: from a problem to what this rank does in each launch.
#include <algorithm>

#include "compiler/ir/names.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/group/group.hpp"
#include "runtime/launch/bind_launch.hpp"
#include "runtime/launch/tensors/tensor_check.hpp"

namespace lacuna::group {
namespace {

std::string shape_text(const LaunchShape& shape, const SequenceLimits& sequences) {
  return (sequences.count == 0 ? ""
                               : std::to_string(sequences.count) + " sequences of at most " +
                                     std::to_string(sequences.max_n_q) + " queries and " +
                                     std::to_string(sequences.max_n_k) + " keys, ") +
         "batch " + std::to_string(shape.n_b) + ", heads " + std::to_string(shape.n_h) +
         ", heads_kv " + std::to_string(shape.n_h_kv) + ", n_q " + std::to_string(shape.n_q) +
         ", n_k " + std::to_string(shape.n_k);
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte)
    hash = (hash ^ (value >> (8 * byte) & 0xff)) * 0x100000001b3U;
  return hash;
}

/// Of what all ranks have to agree on.
std::uint64_t digest_of(const Traffic& traffic) {
  const Problem& p = traffic.problem;
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::int64_t value) { hash = mix(hash, static_cast<std::uint64_t>(value)); };
  for (const std::int32_t extent :
       {p.shape.n_b, p.shape.n_h, p.shape.n_h_kv, p.shape.n_q, p.shape.n_k, p.sequences.count,
        p.sequences.max_n_q, p.sequences.max_n_k, p.layout.stripe, p.head_dim, p.element_bytes})
    add(extent);
  add(static_cast<int>(p.layout.kind));
  add(p.lse);
  for (const std::vector<Piece>& pieces : traffic.pieces) {
    add(static_cast<std::int64_t>(pieces.size()));
    for (const Piece& piece : pieces) {
      for (const Range& range : {piece.heads, piece.q}) add(range.begin), add(range.end);
      add(piece.chunk), add(piece.early);
    }
  }
  return hash;
}

class Planner {
 public:
  Planner(const GroupKernel& kernel, const PlanRequest& request, Diagnostics& diagnostics)
      : kernel_(kernel),
        lowered_(kernel.kernel->lowered()),
        request_(request),
        diagnostics_(diagnostics) {}

  /// False with diagnostics.
  bool fill(GroupPlan& plan) {
    if (!check_request()) return false;
    Problem problem = request_.problem;
    problem.head_dim = lowered_.contract.head_dim;
    problem.element_bytes = lowered_.contract.dtype == DType::kF32 ? 4 : 2;
    const Communicator& ranks = kernel_.group->communicator;
    const Rates& rates = kernel_.group->rates;
    const Work work = work_of(problem.shape);
    std::vector<SchemeCost> costs = cost_schemes(problem, ranks.size, kernel_.rules, work, rates);
    const auto chosen = choose_scheme(costs, request_.scheme);
    if (!chosen) return refuse_schemes(costs);
    plan.schedule = schedule_rank(costs[*chosen].traffic, ranks.rank);
    const bool shares = costs[*chosen].traffic.by_copies;
    if (shares) find_peer_offsets(costs[*chosen].traffic, ranks.rank, plan.schedule);
    plan.events = event_names(plan.schedule);
    plan.json = plan_json(costs, *chosen, request_.scheme.has_value(), rates, work, ranks.rank,
                          plan.events, shares ? plan.schedule.buffer_bytes : 0);
    plan.traffic = std::move(costs[*chosen].traffic);
    if (const auto& gpu = kernel_.group->engine->gpu; gpu != nullptr)
      plan.signals = Signals(
          gpu, kFirstChunkSignal + plan.schedule.chunks.size() + 2 * plan.schedule.launches.size(),
          diagnostics_);
    plan.share = shape_of(plan.traffic.share(ranks.rank), problem.shape);
    plan.messages.reserve(plan.schedule.most_posts());
    plan.tensors = lowered_.contract;
    plan.tensors.params.clear();
    return !diagnostics_.has_errors() && add_kernel_workspace(plan);
  }

 private:
  bool refuse(Code code, const std::string& text) {
    Mismatches(lowered_.contract, diagnostics_).add(code, text);
    return false;
  }

  bool check_request() {
    const LaunchShape& shape = request_.problem.shape;
    if (!check_sequences() ||
        !check_shape(lowered_.contract, request_.problem.launch_shape(shape), diagnostics_))
      return false;
    const Layout& layout = request_.problem.layout;
    if (layout.kind == LayoutKind::kStriped && layout.stripe < 1)
      return refuse(Code::kCallArgument,
                    "stripe: expected 1 or more tokens, got " + std::to_string(layout.stripe));
    if (request_.problem.lse && !lowered_.contract.has_lse)
      return refuse(Code::kTensorArgument, "lse: the spec says \"lse\": false");
    const std::size_t tiles =
        static_cast<std::size_t>(shape.n_h) *
        static_cast<std::size_t>(ceil_div(shape.n_q, lowered_.contract.tile_q));
    if (!request_.work.empty() && request_.work.size() != tiles)
      return refuse(Code::kCallArgument, "work: expected " + std::to_string(tiles) +
                                             " numbers (heads * q_tiles), got " +
                                             std::to_string(request_.work.size()));
    return true;
  }

  bool check_sequences() {
    const auto& [count, max_n_q, max_n_k] = request_.problem.sequences;
    if (lowered_.contract.batch != BatchLayout::kSequences)
      return count == 0 ||
             refuse(Code::kCallArgument, "sequences: expected 0, got " + std::to_string(count) +
                                             ": the kernel was compiled for a batch of one length");
    if (count < 1 || max_n_q < 0 || max_n_k < 0)
      return refuse(Code::kCallArgument,
                    "sequences, max_n_q, max_n_k: expected 1 or more, and 0 or more, got " +
                        std::to_string(count) + ", " + std::to_string(max_n_q) + ", " +
                        std::to_string(max_n_k));
    if (request_.problem.shape.n_b != 1)
      return refuse(Code::kCallArgument,
                    "shape.batch: of sequences expected 1, which has the tokens of all, got " +
                        std::to_string(request_.problem.shape.n_b));
    return request_.work.empty() ||
           refuse(Code::kCallArgument, "work: of sequences expected none: heads stay whole");
  }

  Work work_of(const LaunchShape& shape) const {
    if (const std::int32_t count = request_.problem.sequences.count; count > 0)
      return work_of_sequences(kernel_.kernel->document, shape, count, kernel_.rules.unit);
    if (request_.work.empty())
      return work_of_mask(kernel_.kernel->document, shape, kernel_.rules.unit);
    return work_of_tiles(request_.work, lowered_.plan.program, shape, kernel_.rules.unit);
  }

  bool refuse_schemes(const std::vector<SchemeCost>& costs) {
    std::string reasons;
    for (const SchemeCost& cost : costs) {
      if (request_.scheme && cost.scheme != *request_.scheme) continue;
      reasons +=
          (reasons.empty() ? "" : "; ") + std::string(name_of(cost.scheme)) + ": " + cost.refusal;
    }
    return refuse(Code::kUnsupported, "no such scheme: " + reasons);
  }

  bool add_kernel_workspace(GroupPlan& plan) {
    const std::vector<PieceLaunch>& launches = plan.schedule.launches;
    const LaunchShape& whole = plan.traffic.problem.shape;
    for (std::size_t n = 0; n < launches.size(); ++n) {
      const Piece& piece = launches[n].piece;
      const LaunchShape shape = plan.traffic.problem.launch_shape(
          {whole.n_b, piece.heads.count(), kv_heads_of(piece.heads, whole).count(), piece.q.count(),
           whole.n_k});
      const auto bytes = lacuna::workspace_bytes(*kernel_.kernel, shape, diagnostics_);
      if (!bytes) return false;
      std::size_t& most = plan.lane_bytes[n % kLanes];
      most = std::max(most, (*bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment);
    }
    plan.workspace_bytes = plan.traffic.by_copies ? 0 : plan.schedule.buffer_bytes;
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      plan.lane_offset[lane] = reserve(plan, plan.lane_bytes[lane]);
    plan.no_counts = counts_refusal(plan.traffic);
    for (const PieceLaunch& launch : launches) {
      const std::size_t bytes = plan.no_counts.empty() ? counts_bytes(launch.piece, whole) : 0;
      plan.counts_offset.push_back(reserve(plan, bytes));
    }
    return true;
  }

  static std::size_t reserve(GroupPlan& plan, std::size_t bytes) {
    const std::size_t offset = plan.workspace_bytes;
    plan.workspace_bytes += (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    return offset;
  }

  std::size_t counts_bytes(const Piece& piece, const LaunchShape& whole) const {
    const std::int32_t tiles = ceil_div(piece.q.count(), lowered_.contract.tile_q);
    return static_cast<std::size_t>(whole.n_b) * static_cast<std::size_t>(piece.heads.count()) *
           static_cast<std::size_t>(tiles) * 3 * sizeof(std::int32_t);
  }

  /// Tiles are those of the whole problem only where every piece begins with one.
  std::string counts_refusal(const Traffic& traffic) const {
    if (traffic.problem.sequences.count > 0) return "a group has none of sequences";
    if (lowered_.contract.has_branches) return "each branch has tiles of its own";
    if (lowered_.contract.packs_heads) return "heads that share keys share work tiles";
    for (const std::vector<Piece>& pieces : traffic.pieces) {
      for (const Piece& piece : pieces) {
        if (piece.q.begin % lowered_.contract.tile_q != 0)
          return "queries are cut at " + std::to_string(piece.q.begin) +
                 ", in the middle of a tile of " + std::to_string(lowered_.contract.tile_q);
      }
    }
    return "";
  }

  const GroupKernel& kernel_;
  const LoweredKernel& lowered_;
  const PlanRequest& request_;
  Diagnostics& diagnostics_;
};

}  // namespace

GroupPlan::~GroupPlan() {
  if (shared.of_rank.empty() || kernel->group->lanes == nullptr) return;
  const Communicator& ranks = kernel->group->communicator;
  const Lanes& lanes = *kernel->group->lanes;
  Diagnostics lost;  // whoever calls the group next is told
  for (CUstream stream : {lanes.exchange, lanes.incoming})
    ranks.synchronize(ranks.state.get(), stream, lost);
}

std::shared_ptr<GroupPlan> make_group_plan(std::shared_ptr<GroupKernel> kernel,
                                           const PlanRequest& request, Diagnostics& diagnostics) {
  auto plan = std::make_shared<GroupPlan>();
  Diagnostics found;
  const bool is_well = Planner(*kernel, request, found).fill(*plan);
  std::string text = found.items.empty() ? "" : found.items.front().message;
  if (is_well) {
    text = shape_text(request.problem.shape, request.problem.sequences) + ", layout " +
           std::string(name_of(request.problem.layout.kind)) +
           (request.problem.lse ? ", with lse" : "");
  }
  const std::uint64_t digest = is_well ? digest_of(plan->traffic) : 0;
  const GroupState& group = *kernel->group;
  plan->kernel = std::move(kernel);
  for (Diagnostic& d : found.items) diagnostics.add(std::move(d));
  if (!agree(group, "plan", is_well, digest, text, diagnostics)) return nullptr;
  const Communicator& ranks = group.communicator;
  if (plan->traffic.by_copies &&
      !ranks.share(ranks.state.get(), plan->schedule.buffer_bytes, plan->shared, diagnostics))
    return nullptr;
  return plan;
}

}  // namespace lacuna::group
