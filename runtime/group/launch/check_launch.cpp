#include "runtime/group/launch/check_launch.hpp"

#include <algorithm>

#include "compiler/ir/shift_positions.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/group/launch/piece_arguments.hpp"
#include "runtime/launch/tensors/tensor_check.hpp"

namespace lacuna::group {
namespace {

class Checker {
 public:
  Checker(const GroupPlan& plan, const lacuna_launch_args& args, BoundLaunch& bound,
          Diagnostics& diagnostics)
      : plan_(plan),
        problem_(plan.traffic.problem),
        ranks_(plan.kernel->group->communicator),
        args_(args),
        bound_(bound),
        diagnostics_(diagnostics) {}

  bool check() {
    lacuna_launch_args tensors = args_;
    tensors.params_count = 0;
    tensors.counts = nullptr;  // of the whole problem, not of the share
    if (!bind_launch(plan_.tensors, tensors, bound_, diagnostics_)) return false;
    const std::pair<const char*, bool> unused[] = {{"tile_mask", args_.tile_mask != nullptr},
                                                   {"selection", args_.selection != nullptr},
                                                   {"branches", args_.branches_count > 0}};
    for (const auto& [name, is_passed] : unused) {
      if (is_passed) refuse(Code::kTensorArgument, std::string(name) + ": a group has none");
    }
    if ((args_.lse != nullptr) != problem_.lse)
      refuse(Code::kTensorArgument, std::string("lse: the plan is for launches ") +
                                        (problem_.lse ? "with one" : "without"));
    if (args_.sm_margin != 0)
      refuse(Code::kCallArgument, "sm_margin: expected 0, got " + std::to_string(args_.sm_margin) +
                                      ": a group has that of its options");
    return !diagnostics_.has_errors() && check_share() && check_rows() && check_workspace() &&
           check_params() && check_counts() && check_events();
  }

 private:
  bool refuse(Code code, const std::string& text) {
    Mismatches(plan_.tensors, diagnostics_).add(code, text);
    return false;
  }

  bool check_share() {
    const LaunchShape& share = plan_.share;
    const auto check_one = [&](const char* tensor, const char* name, std::int64_t expected,
                               std::int64_t got) {
      if (expected != got)
        refuse(Code::kTensorArgument, std::string("argument ") + tensor + ": " + name +
                                          " expected " + std::to_string(expected) + " (rank " +
                                          std::to_string(ranks_.rank) + "), got " +
                                          std::to_string(got));
    };
    const auto& q = bound_[TensorRole::kQ].extent;
    const auto& k = bound_[TensorRole::kK].extent;
    check_one("q", "batch", share.n_b, q[0]);
    check_one("q", "heads", share.n_h, q[1]);
    check_one("k", "heads_kv", share.n_h_kv, k[1]);
    check_one("q", "n_q", share.n_q, q[2]);
    check_one("k", "n_k", share.n_k, k[2]);
    const SequenceLimits& sequences = problem_.sequences;
    if (sequences.count == 0) return !diagnostics_.has_errors();
    check_one("sequences", "count", sequences.count, bound_.shape.n_b);
    check_one("sequences", "max_n_q", sequences.max_n_q, bound_.shape.n_q);
    check_one("sequences", "max_n_k", sequences.max_n_k, bound_.shape.n_k);
    return !diagnostics_.has_errors();
  }

  /// Messages are of whole pieces of memory.
  bool check_rows() {
    constexpr const char* kNames[] = {"q", "k", "v", "o"};
    for (std::size_t t = 0; t < 4 && !problem_.strided; ++t) {
      const BoundTensor& tensor = bound_[kRoles[t]];
      if (tensor.extent[2] > 1 && tensor.stride[2] != problem_.head_dim)
        refuse(Code::kTensorArgument,
               std::string("argument ") + kNames[t] + ": stride over tokens expected " +
                   std::to_string(problem_.head_dim) + ", got " + std::to_string(tensor.stride[2]) +
                   ": the plan was not made for strided rows");
    }
    return !diagnostics_.has_errors();
  }

  bool check_workspace() {
    if (plan_.workspace_bytes == 0) return true;
    const bool is_aligned =
        reinterpret_cast<std::uintptr_t>(args_.workspace) % kBufferAlignment == 0;
    if (args_.workspace != nullptr && is_aligned && args_.workspace_bytes >= plan_.workspace_bytes)
      return true;
    return refuse(Code::kWorkspaceArgument,
                  "workspace: expected " + std::to_string(plan_.workspace_bytes) +
                      " bytes at a multiple of " + std::to_string(kBufferAlignment) + ", got " +
                      (args_.workspace == nullptr ? "null"
                       : is_aligned               ? std::to_string(args_.workspace_bytes)
                                                  : "an address in between"));
  }

  std::int64_t extent_of(const ParamDim& dim) const {
    const LaunchShape shape = problem_.launch_shape(problem_.shape);
    switch (dim.axis) {
      case ParamAxis::kBatch:
        return shape.n_b;
      case ParamAxis::kHeads:
        return shape.n_h;
      case ParamAxis::kQTiles:
        return ceil_div(shape.n_q, plan_.tensors.tile_q);
      case ParamAxis::kKTiles:
        return ceil_div(shape.n_k, plan_.tensors.tile_k);
      case ParamAxis::kNQ:
        return shape.n_q;
      case ParamAxis::kNK:
        return shape.n_k;
      case ParamAxis::kFixed:
        return dim.extent;
    }
    return 0;
  }

  /// Those that a launch adds to the caller's.
  std::size_t position_params() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        kPositionParamNames,
        [&](std::string_view name) { return find_param(plan_, name.data()) != nullptr; }));
  }

  /// Parameters are those of the whole problem. The launches check the rest.
  bool check_params() {
    const std::size_t most = kMaxParams - position_params();
    if (args_.params_count > most)
      return refuse(Code::kParamArgument, "params: expected at most " + std::to_string(most) +
                                              ", got " + std::to_string(args_.params_count));
    for (std::size_t p = 0; p < args_.params_count; ++p) {
      const lacuna_param& given = args_.params[p];
      const ParamSpec* param = find_param(plan_, given.name);
      if (param == nullptr || given.tensor == nullptr) continue;
      const std::vector<ParamDim>& dims = param->symbol.shape;
      bool fits = given.tensor->shape != nullptr &&
                  given.tensor->ndim == static_cast<std::int32_t>(dims.size());
      std::string expected;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        fits = fits && given.tensor->shape[d] == extent_of(dims[d]);
        expected += (d == 0 ? "" : ", ") + std::to_string(extent_of(dims[d]));
      }
      if (!fits)
        refuse(Code::kParamArgument, "parameter " + param->symbol.name + ": expected [" + expected +
                                         "], that of the whole problem");
    }
    return !diagnostics_.has_errors();
  }

  bool check_counts() {
    if (args_.counts == nullptr) return true;
    if (!plan_.no_counts.empty())
      return refuse(Code::kTensorArgument, "counts: " + plan_.no_counts);
    const LaunchShape& whole = problem_.shape;
    const TensorRule rule = {"counts",
                             kI32,
                             4,
                             {"batch", "heads", "q_tiles", "3"},
                             {whole.n_b, whole.n_h, ceil_div(whole.n_q, plan_.tensors.tile_q), 3},
                             lacuna::Layout::kCompact,
                             true};
    Mismatches mismatches(plan_.tensors, diagnostics_);
    check_tensor(rule, *args_.counts, Code::kTensorArgument, mismatches,
                 bound_.tensors[static_cast<std::size_t>(TensorRole::kCounts)]);
    return !mismatches.any();
  }

  bool check_events() {
    const std::size_t expected = plan_.events.size();
    if (args_.stage_events == nullptr && args_.stage_events_count == 0) return true;
    if (plan_.kernel->group->engine->gpu == nullptr)
      return refuse(Code::kTensorArgument, "stage_events: expected none on the CPU");
    if (args_.stage_events == nullptr || args_.stage_events_count != expected)
      return refuse(Code::kTensorArgument, "stage_events: expected " + std::to_string(expected) +
                                               " (\"events\" of the plan), got " +
                                               std::to_string(args_.stage_events_count));
    for (std::size_t i = 0; i < expected; ++i) {
      if (args_.stage_events[i] == nullptr)
        return refuse(Code::kTensorArgument,
                      "stage_events[" + std::to_string(i) + "]: expected an event, got null");
    }
    return true;
  }

  const GroupPlan& plan_;
  const Problem& problem_;
  const Communicator& ranks_;
  const lacuna_launch_args& args_;
  BoundLaunch& bound_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool check_group_launch(const GroupPlan& plan, const lacuna_launch_args& args, BoundLaunch& bound,
                        Diagnostics& diagnostics) {
  return Checker(plan, args, bound, diagnostics).check();
}

}  // namespace lacuna::group
