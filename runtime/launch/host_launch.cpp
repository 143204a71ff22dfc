#include "runtime/launch/host_launch.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "runtime/cpu/interpreter/interpreter.hpp"
#include "runtime/launch/launch_checks.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kHostErrorBytes = 4096;

HostTensor host_tensor(const BoundTensor& bound) {
  HostTensor tensor;
  tensor.data = bound.data;
  std::copy_n(bound.stride, kMaxRank, tensor.stride);
  return tensor;
}

HostArgs args_of_shape(const LaunchShape& shape) {
  HostArgs args;
  args.n_b = shape.n_b;
  args.n_h = shape.n_h;
  args.n_h_kv = shape.n_h_kv;
  args.n_q = shape.n_q;
  args.n_k = shape.n_k;
  return args;
}

HostArgs host_args(const KernelState& kernel, const BoundLaunch& bound) {
  HostArgs args = args_of_shape(bound.shape);
  args.q = host_tensor(bound[TensorRole::kQ]);
  args.k = host_tensor(bound[TensorRole::kK]);
  args.v = host_tensor(bound[TensorRole::kV]);
  args.o = host_tensor(bound[TensorRole::kO]);
  args.lse = host_tensor(bound[TensorRole::kLse]);
  args.counts = host_tensor(bound[TensorRole::kCounts]);
  args.tile_mask = host_tensor(bound[TensorRole::kTileMask]);
  args.list_indices = host_tensor(bound[TensorRole::kListIndices]);
  args.list_counts = host_tensor(bound[TensorRole::kListCounts]);
  args.previous_lse = host_tensor(bound[TensorRole::kPreviousLse]);
  args.order = host_tensor(bound[TensorRole::kOrder]);
  args.params = bound.params.data();
  args.threads = {kernel.threads, kernel.engine->threads.lender()};
  args.softmax_scale = bound.softmax_scale;
  return args;
}

/// The attend op alone.
bool run_attend(const KernelState& kernel, const HostArgs& args, Diagnostics& diagnostics) {
  if (kernel.host.backend == nullptr) {
    run_interpreted(kernel.lowered().plan.program, args);
    return true;
  }
  char text[kHostErrorBytes] = {};
  const int status = kernel.host.backend->run(kernel.host.code, &args, text, sizeof(text));
  if (status == kHostOutOfMemory) throw std::bad_alloc();
  if (status == kHostDone) return true;
  Diagnostic d;
  d.code = Code::kHostFailed;
  d.message = "kernel " + kernel.lowered().contract.kernel + " failed on the CPU: " + text;
  diagnostics.add(std::move(d));
  return false;
}

}  // namespace

KeptBits kept_bits(const KernelState& kernel, const lacuna_selection* selection) {
  if (selection == nullptr) return {};
  return {static_cast<std::uint32_t*>(selection->data), is_decided(kernel, selection)};
}

bool run_on_host(const KernelState& kernel, const BoundLaunch& bound, KeptBits kept,
                 std::int32_t first_b, Diagnostics& diagnostics, const BranchSums& sums) {
  const Program& program = kernel.lowered().plan.program;
  HostArgs caller = host_args(kernel, bound);
  caller.first_b = first_b;
  if (!has_other_ops(program)) return run_attend(kernel, caller, diagnostics);
  PreparedLaunch prepared;
  run_ops_before_attend(program, caller, kept, prepared);
  if (!run_attend(kernel, prepared.args, diagnostics)) return false;
  run_ops_behind_attend(program, caller, prepared, sums);
  return true;
}

bool run_branches_on_host(const KernelState& kernel, const LaunchShape& shape,
                          const BranchLaunches& launches, std::int32_t first_b,
                          Diagnostics& diagnostics) {
  const std::size_t rows = static_cast<std::size_t>(shape.n_b) *
                           static_cast<std::size_t>(shape.n_h) *
                           static_cast<std::size_t>(shape.n_q);
  const auto width = static_cast<std::size_t>(kernel.lowered().contract.head_dim_v);
  std::vector<float> o(rows * width), lse(rows);
  for (std::size_t n = 0; n < kernel.branches.size(); ++n) {
    const KernelState& branch = *kernel.branches[n];
    if (!run_on_host(branch, launches[n].bound, launches[n].kept, first_b, diagnostics,
                     {o.data(), lse.data()}))
      return false;
  }
  return true;
}

std::size_t host_mask_bytes(const KernelState& kernel, const LaunchShape& shape) {
  return kept_words(kernel.lowered().plan.program, args_of_shape(shape)) * sizeof(std::uint32_t);
}

}  // namespace lacuna
