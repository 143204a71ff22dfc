// launch_kernel: the path every call of a host application takes. On the GPU one driver call for
// each kernel of the LaunchProgram, each slot to clear and each event of the caller's, and nothing
// else that could wait.
#include <algorithm>
#include <cstring>

#include "runtime/cuda/tensor_maps.hpp"
#include "runtime/engine/kernel.hpp"
#include "runtime/launch/argument_block.hpp"
#include "runtime/launch/bind_launch.hpp"
#include "runtime/launch/branches.hpp"
#include "runtime/launch/host_codes.hpp"
#include "runtime/launch/host_launch.hpp"
#include "runtime/launch/host_sequences.hpp"
#include "runtime/launch/launch_checks.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kUnitBytes = kWorkspaceUnitBytes;

/// `sm_margin`: multiprocessors that the launch leaves to others; within the device's, as checked.
bool compute_values(const KernelState& kernel, const LaunchShape& shape, std::int64_t sm_margin,
                    LaunchValues& values, Diagnostics& diagnostics) {
  const auto& gpu = kernel.engine->gpu;
  const std::int32_t sm_count =
      gpu != nullptr ? gpu->sm_count - static_cast<std::int32_t>(sm_margin) : kUnlimitedSmCount;
  if (evaluate_launch_values(kernel.lowered().launch, shape, values.data, sm_count)) return true;
  diagnostics.add(
      launch_error(kernel, Code::kWorkspaceArgument,
                   ", workspace: expected at most 2147483647 units of 256 bytes for a shape, "
                   "got more"));
  return false;
}

/// The same. Usually a launch has the shape of the one before it, whose values are then taken.
bool launch_values(const KernelState& kernel, const LaunchShape& shape, std::int64_t sm_margin,
                   LaunchValues& values, Diagnostics& diagnostics) {
  const RecentLaunchesHold recent(kernel.recent.get());
  const std::size_t bytes = kernel.lowered().launch.values.size() * sizeof(values.data[0]);
  if (recent && recent->shape == shape && recent->sm_margin == sm_margin) {
    std::memcpy(values.data, recent->values.data, bytes);
    return true;
  }
  if (!compute_values(kernel, shape, sm_margin, values, diagnostics)) return false;
  if (recent) {
    recent->shape = shape;
    recent->sm_margin = sm_margin;
    std::memcpy(recent->values.data, values.data, bytes);
  }
  return true;
}

std::size_t bytes_of(const LaunchValues& values, int value) {
  return value < 0 ? 0 : static_cast<std::size_t>(values.data[value]) * kUnitBytes;
}

WorkspaceBytes workspace_of(const KernelState& kernel, const LaunchShape& shape,
                            const LaunchValues& values) {
  return workspace_parts(kernel.lowered().launch, shape, values.data);
}

std::size_t kept_bytes(const KernelState& kernel, const LaunchShape& shape,
                       const LaunchValues& values) {
  if (kernel.engine->gpu == nullptr) return host_mask_bytes(kernel, shape);
  const int slot = kernel.lowered().launch.kept_slot;
  if (slot < 0) return 0;
  const LaunchProgram& program = kernel.lowered().launch;
  return bytes_of(values, program.slots[static_cast<std::size_t>(slot)].size) *
         static_cast<std::size_t>(workspace_pieces(program, shape));
}

/// Clears what the kernels expect to be zero: slots of the workspace, reports.
CUresult clear_memory(const KernelState& kernel, const BoundLaunch& bound,
                      const LaunchMemory& memory, const LaunchValues& values, void* stream) {
  CUresult result = kCudaSuccess;
  const auto clear = [&](void* data, std::size_t bytes) {
    if (data == nullptr || bytes == 0 || result != kCudaSuccess) return;
    result = kernel.engine->gpu->driver->cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(data), 0,
                                                         bytes, static_cast<CUstream>(stream));
  };
  for (std::size_t i = 0; i < kernel.lowered().launch.slots.size(); ++i) {
    const WorkspaceSlot& slot = kernel.lowered().launch.slots[i];
    if (slot.cleared)
      clear(slot_address(kernel.lowered().launch, i, memory, values.data),
            bytes_of(values, slot.size));
  }
  for (const TensorRole role : kernel.lowered().launch.cleared) {
    const ClearedReport report = cleared_report(bound, role);
    clear(report.data, report.bytes);
  }
  return result;
}

/// Records event `index` of the caller's; nothing where it passed none.
CUresult record_event(const KernelState& kernel, const lacuna_launch_args& args,
                      std::size_t index) {
  if (args.stage_events == nullptr) return kCudaSuccess;
  return kernel.engine->gpu->driver->cuEventRecord(static_cast<CUevent>(args.stage_events[index]),
                                                   static_cast<CUstream>(args.stream));
}

/// CUDA 12.3: from here on a captured graph keeps launches that overlap.
constexpr int kFirstDriverThatOverlaps = 12030;

std::int32_t grid_of(const KernelLaunch& launch, const LaunchValues& values,
                     const lacuna_launch_args& args) {
  return values.data[args.k_summaries != nullptr ? launch.kept_grid_x : launch.grid_x];
}

/// `overlaps`: with the kernel before it, which this call has launched.
CUresult enqueue_kernel(const KernelState& kernel, std::size_t index, const LaunchValues& values,
                        std::int32_t rows, void* block, const lacuna_launch_args& args,
                        bool overlaps) {
  const KernelLaunch& launch = kernel.lowered().launch.launches[index];
  CUlaunchConfig config;
  config.grid_x = static_cast<unsigned>(grid_of(launch, values, args));
  config.grid_y = static_cast<unsigned>(rows);
  config.block_x = static_cast<unsigned>(launch.threads);
  config.shared_bytes = static_cast<unsigned>(launch.smem_bytes);
  config.stream = static_cast<CUstream>(args.stream);
  CUlaunchAttribute attribute;
  attribute.id = kLaunchProgrammaticStreamSerialization;
  attribute.allowed = 1;
  if (overlaps) config.attributes = &attribute, config.attribute_count = 1;
  void* parameters[] = {block};
  // The driver takes a CUkernel, which belongs to no context, in place of a CUfunction.
  return kernel.engine->gpu->driver->cuLaunchKernelEx(
      &config, reinterpret_cast<CUfunction>(kernel.module.kernels[index]), parameters, nullptr);
}

/// The blocks that the kernels of a launch take.
struct ArgumentBlocks {
  alignas(kArgumentAlignment) std::byte usual[kMaxArgumentBytes];
  alignas(kArgumentAlignment) std::byte packed[kMaxArgumentBytes];
};

/// Launches all kernels in their order, except those whose decision still holds. Where events are
/// recorded between kernels, none overlaps with another.
CUresult enqueue(const KernelState& kernel, const LaunchValues& values, std::int32_t entries,
                 ArgumentBlocks& blocks, const lacuna_launch_args& args) {
  const bool may_overlap = args.stage_events == nullptr &&
                           kernel.engine->gpu->driver->cuda_version >= kFirstDriverThatOverlaps;
  bool is_first = true;
  CUresult result = kCudaSuccess;
  for (std::size_t i = 0; i < kernel.module.kernels.size() && result == kCudaSuccess; ++i) {
    const KernelLaunch& launch = kernel.lowered().launch.launches[i];
    const bool is_idle = grid_of(launch, values, args) == 0;
    if (!is_idle && !(launch.decides && is_decided(kernel, args.selection))) {
      const bool overlaps = may_overlap && launch.overlaps && !is_first;
      const std::int32_t rows = launch.each_sequence ? entries : 1;
      result = enqueue_kernel(kernel, i, values, rows,
                              launch.is_packed ? blocks.packed : blocks.usual, args, overlaps);
      is_first = false;
    }
    if (result == kCudaSuccess) result = record_event(kernel, args, i + 1);
  }
  return result;
}

bool check_launched(const KernelState& kernel, CUresult result, Diagnostics& diagnostics) {
  if (result == kCudaSuccess) return true;
  diagnostics.add(launch_error(
      kernel, Code::kDriverCall,
      " cannot be launched: " + driver_error_text(*kernel.engine->gpu->driver, result)));
  return false;
}

/// A launch without queries has no work, but records its events, since others may wait for them.
bool launch_nothing(const KernelState& kernel, const lacuna_launch_args& args,
                    Diagnostics& diagnostics) {
  if (args.stage_events == nullptr) return true;
  const ContextScope scope(*kernel.engine->gpu);
  CUresult result = scope.result();
  for (std::size_t i = 0; i < args.stage_events_count && result == kCudaSuccess; ++i)
    result = record_event(kernel, args, i);
  return check_launched(kernel, result, diagnostics);
}

bool add_maps(const KernelState& kernel, const std::vector<TensorMapFields>& maps,
              const BoundLaunch& bound, std::byte* block, Diagnostics& diagnostics) {
  if (maps.empty()) return true;
  const LoweredKernel& lowered = kernel.lowered();
  const RecentLaunchesHold recent(kernel.recent.get());
  return encode_tensor_maps(*kernel.engine->gpu->driver, lowered.launch, maps,
                            lowered.contract.kernel, bound, recent ? &recent->maps : nullptr, block,
                            diagnostics);
}

bool add_all_maps(const KernelState& kernel, const BoundLaunch& bound, ArgumentBlocks& blocks,
                  Diagnostics& diagnostics) {
  const LaunchProgram& program = kernel.lowered().launch;
  return add_maps(kernel, program.maps, bound, blocks.usual, diagnostics) &&
         add_maps(kernel, program.packed.maps, bound, blocks.packed, diagnostics);
}

/// `shared_bytes`: in front of the workspace, where the kernel is a branch.
bool launch_on_gpu(KernelState& kernel, const BoundLaunch& bound, const LaunchValues& values,
                   std::size_t shared_bytes, const lacuna_launch_args& args,
                   Diagnostics& diagnostics) {
  const Device& device = *kernel.engine->gpu;
  const LaunchProgram& program = kernel.lowered().launch;
  const LaunchMemory memory{
      .workspace = shared_bytes == 0 ? args.workspace
                                     : static_cast<std::byte*>(args.workspace) + shared_bytes,
      .kept = args.selection != nullptr ? args.selection->data : nullptr,
      .shared = args.workspace,
      .pieces = static_cast<std::size_t>(workspace_pieces(program, bound.shape))};
  ArgumentBlocks blocks;
  fill_argument_block(program, bound, memory, values.data, blocks.usual);
  if (!program.packed.fields.empty())
    fill_packed_block(program, bound, memory, values.data, blocks.usual, blocks.packed);
  const ContextScope scope(device);
  CUresult result = scope.result();
  if (result == kCudaSuccess) {
    if (!add_all_maps(kernel, bound, blocks, diagnostics)) return false;
    result = record_event(kernel, args, 0);
  }
  if (result == kCudaSuccess) result = clear_memory(kernel, bound, memory, values, args.stream);
  if (result == kCudaSuccess) result = enqueue(kernel, values, bound.shape.n_b, blocks, args);
  if (result == kCudaSuccess) kernel.publisher.release();
  return check_launched(kernel, result, diagnostics);
}

/// The same launch with keys and values of the kernel's type in place of e4m3 codes.
BoundLaunch with_numbers(const KernelState& kernel, const BoundLaunch& bound,
                         std::vector<unsigned char>& keys, std::vector<unsigned char>& values) {
  BoundLaunch own = bound;
  const DType dtype = kernel.lowered().contract.dtype;
  const Threads threads(kernel.threads, kernel.engine->threads.lender());
  const auto convert = [&](TensorRole role, TensorRole scale, std::vector<unsigned char>& memory) {
    own.tensors[static_cast<std::size_t>(role)] = numbers_of_codes(
        bound[role], bound[scale], bound.shape.n_b, bound.shape.n_k, dtype, threads, memory);
  };
  convert(TensorRole::kK, TensorRole::kKScale, keys);
  convert(TensorRole::kV, TensorRole::kVScale, values);
  return own;
}

/// Runs the branches one after the other. The sums that each hands on to the next lie in front of
/// the workspace; behind them all branches use the same memory.
bool launch_branches_on_gpu(const KernelState& kernel, const BranchLaunches& launches,
                            const lacuna_launch_args& args, Diagnostics& diagnostics) {
  std::size_t shared = 0;
  for (std::size_t n = 0; n < kernel.branches.size(); ++n) {
    const LaunchShape& shape = launches[n].bound.shape;
    LaunchValues values;
    if (!launch_values(*kernel.branches[n], shape, args.sm_margin, values, diagnostics))
      return false;
    shared = std::max(shared, workspace_of(*kernel.branches[n], shape, values).shared);
  }
  lacuna_launch_args of_branch = args;
  for (std::size_t n = 0; n < kernel.branches.size(); ++n) {
    KernelState& branch = *kernel.branches[n];
    const BoundLaunch& own = launches[n].bound;
    LaunchValues values;
    if (!launch_values(branch, own.shape, args.sm_margin, values, diagnostics)) return false;
    of_branch.selection = launches[n].selection;
    if (!launch_on_gpu(branch, own, values, shared, of_branch, diagnostics)) return false;
    count_launch(branch, of_branch.selection);
    if (args.stage_events != nullptr)
      of_branch.stage_events += branch.lowered().launch.launches.size();
  }
  return true;
}

bool launch_on_host(const KernelState& kernel, const BoundLaunch& bound,
                    const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const KeptBits kept = kept_bits(kernel, args.selection);
  if (args.sequences != nullptr) return run_sequences_on_host(kernel, bound, kept, diagnostics);
  if (kernel.lowered().contract.kv == KvFormat::kSame)
    return run_on_host(kernel, bound, kept, 0, diagnostics);
  std::vector<unsigned char> keys, values;
  return run_on_host(kernel, with_numbers(kernel, bound, keys, values), kept, 0, diagnostics);
}

}  // namespace

std::optional<std::size_t> workspace_bytes(const KernelState& kernel, const LaunchShape& shape,
                                           Diagnostics& diagnostics) {
  WorkspaceBytes most;  // branches run one after the other
  LaunchValues values;
  for (const std::shared_ptr<KernelState>& branch : kernel.branches) {
    const LaunchShape own_shape = shape_of_branch(branch->document.spec, shape);
    if (!compute_values(*branch, own_shape, 0, values, diagnostics)) return std::nullopt;
    const WorkspaceBytes bytes = workspace_of(*branch, own_shape, values);
    most = {std::max(most.shared, bytes.shared), std::max(most.own, bytes.own)};
  }
  if (!kernel.branches.empty()) return most.shared + most.own;
  if (!compute_values(kernel, shape, 0, values, diagnostics)) return std::nullopt;
  return workspace_of(kernel, shape, values).own;
}

std::optional<std::size_t> selection_bytes(const KernelState& kernel, const LaunchShape& shape,
                                           Diagnostics& diagnostics) {
  if (!kernel.branches.empty()) return 0;
  LaunchValues values;
  if (!compute_values(kernel, shape, 0, values, diagnostics)) return std::nullopt;
  return kept_bytes(kernel, shape, values);
}

namespace {

/// What each branch computes on, reports and keeps.
bool bind_branches(const KernelState& kernel, const BoundLaunch& bound, KvFormat kv,
                   const lacuna_launch_args& args, BranchLaunches& launches,
                   Diagnostics& diagnostics) {
  bool fits = check_branch_names(kernel, args, diagnostics);
  for (std::size_t n = 0; n < kernel.branches.size(); ++n) {
    const KernelState& branch = *kernel.branches[n];
    const VariantSpec& spec = branch.document.spec;
    const LaunchContract& contract = branch.lowered().contract;
    BoundLaunch& own = launches[n].bound =
        bind_branch(spec, contract, branch.lowered().plan.program, kv, bound);
    const lacuna_branch_args* given = args_of_branch(args, spec.branch.name);
    if (given == nullptr) continue;
    fits &= bind_reports(contract, *given, own, diagnostics);
    launches[n].selection = given->selection;
    LaunchValues values;
    if (given->selection == nullptr) continue;
    fits &= compute_values(branch, own.shape, args.sm_margin, values, diagnostics) &&
            check_selection(branch, *given->selection, args.stream,
                            kept_bytes(branch, own.shape, values), diagnostics);
  }
  return fits;
}

bool launch_branches(const KernelState& kernel, const BoundLaunch& bound,
                     const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const auto needed = workspace_bytes(kernel, bound.shape, diagnostics);
  bool fits = needed && check_memory(kernel, "workspace", args.workspace, args.workspace_bytes,
                                     *needed, diagnostics);
  if (args.selection != nullptr)
    fits &= check_selection(kernel, *args.selection, args.stream, 0, diagnostics);
  const bool on_gpu = kernel.engine->gpu != nullptr;
  const KvFormat kv = kernel.lowered().contract.kv;
  const bool has_sequences = args.sequences != nullptr;
  const bool is_converted = !on_gpu && !has_sequences && kv == KvFormat::kE4M3;
  std::vector<unsigned char> keys, values;
  BranchLaunches launches;
  fits &= bind_branches(kernel,
                        is_converted && fits ? with_numbers(kernel, bound, keys, values) : bound,
                        is_converted ? KvFormat::kSame : kv, args, launches, diagnostics);
  if (!fits) return false;
  if (on_gpu) return launch_branches_on_gpu(kernel, launches, args, diagnostics);
  for (std::size_t n = 0; n < kernel.branches.size(); ++n)
    launches[n].kept = kept_bits(*kernel.branches[n], launches[n].selection);
  const bool launched =
      has_sequences ? run_branches_of_sequences_on_host(kernel, bound, launches, diagnostics)
                    : run_branches_on_host(kernel, bound.shape, launches, 0, diagnostics);
  for (std::size_t n = 0; n < kernel.branches.size() && launched; ++n)
    count_launch(*kernel.branches[n], launches[n].selection);
  return launched;
}

}  // namespace

bool launch_kernel(KernelState& kernel, const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const bool on_gpu = kernel.engine->gpu != nullptr;
  if (!check_process(*kernel.engine, diagnostics)) return false;
  if (on_gpu && !kernel.ready.load(std::memory_order_acquire)) {
    diagnostics.add(launch_error(kernel, Code::kNotPrepared,
                                 " is not prepared: a launch never compiles or loads; call "
                                 "lacuna_prepare first"));
    return false;
  }
  BoundLaunch bound;
  if (!bind_launch(kernel.lowered().contract, args, bound, diagnostics)) return false;
  if (!check_sm_margin(kernel, args.sm_margin, diagnostics)) return false;
  bool fits = check_events(kernel, args, diagnostics);
  if (kernel.branches.empty()) fits &= check_branch_names(kernel, args, diagnostics);
  if (bound.empty()) return fits && launch_nothing(kernel, args, diagnostics);
  if (!kernel.branches.empty()) return fits && launch_branches(kernel, bound, args, diagnostics);
  LaunchValues values;
  if (!launch_values(kernel, bound.shape, args.sm_margin, values, diagnostics)) return false;
  fits &= check_memory(kernel, "workspace", args.workspace, args.workspace_bytes,
                       workspace_of(kernel, bound.shape, values).own, diagnostics);
  if (args.selection != nullptr)
    fits &= check_selection(kernel, *args.selection, args.stream,
                            kept_bytes(kernel, bound.shape, values), diagnostics);
  if (!fits) return false;
  const bool launched = on_gpu ? launch_on_gpu(kernel, bound, values, 0, args, diagnostics)
                               : launch_on_host(kernel, bound, args, diagnostics);
  if (launched) count_launch(kernel, args.selection);
  return launched;
}

}  // namespace lacuna
