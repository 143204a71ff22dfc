// launch_kernel: the path every call of a host application takes. On the GPU one driver call for
// each kernel of the LaunchProgram, and nothing else that could wait.
#include <algorithm>

#include "runtime/argument_block.hpp"
#include "runtime/interpreter.hpp"
#include "runtime/kernel.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kWorkspaceUnit = 256;
constexpr std::size_t kErrorBytes = 4096;

struct LaunchValues {
  std::int32_t data[kMaxLaunchValues];
};

void compute_values(const KernelState& kernel, const LaunchShape& shape, LaunchValues& values) {
  if (kernel.host.launch_values != nullptr) {
    const std::int32_t variables[] = {shape.n_b, shape.n_h, shape.n_h_kv, shape.n_q, shape.n_k};
    kernel.host.backend->run_launch(kernel.host.launch_values, variables, values.data);
  } else {
    evaluate_launch_values(kernel.launch, shape, values.data);
  }
}

std::size_t workspace_of(const KernelState& kernel, const LaunchValues& values) {
  const int index = kernel.launch.workspace_value;
  return index < 0 ? 0 : static_cast<std::size_t>(values.data[index]) * kWorkspaceUnit;
}

Diagnostic error(const KernelState& kernel, Code code, const std::string& text) {
  Diagnostic d;
  d.code = code;
  d.message = "kernel " + kernel.contract.kernel + text;
  return d;
}

bool check_workspace(const KernelState& kernel, const LaunchValues& values,
                     const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const std::size_t needed = workspace_of(kernel, values);
  if (needed == 0) return true;
  const std::uintptr_t rest = reinterpret_cast<std::uintptr_t>(args.workspace) % kWorkspaceUnit;
  if (args.workspace != nullptr && rest == 0 && args.workspace_bytes >= needed) return true;
  const auto refuse = [&](const std::string& text) {
    diagnostics.add(error(kernel, Code::kWorkspaceArgument, ", workspace: expected " + text));
  };
  if (args.workspace == nullptr) {
    refuse(std::to_string(needed) + " bytes, got null");
    return false;
  }
  if (args.workspace_bytes < needed) {
    refuse(std::to_string(needed) + " bytes, got " + std::to_string(args.workspace_bytes));
  }
  if (rest != 0) {
    refuse("an address aligned to " + std::to_string(kWorkspaceUnit) + " bytes, got one " +
           std::to_string(rest) + " bytes past that");
  }
  return false;
}

bool launch_on_gpu(KernelState& kernel, const BoundLaunch& bound, const LaunchValues& values,
                   void* stream, Diagnostics& diagnostics) {
  const Device& device = *kernel.engine->gpu;
  const ContextScope scope(device);
  CUresult result = scope.result();
  for (std::size_t i = 0; i < kernel.module.kernels.size() && result == kCudaSuccess; ++i) {
    const KernelLaunch& launch = kernel.launch.launches[i];
    alignas(16) std::byte block[kMaxArgumentBytes];
    fill_argument_block(launch, bound, values.data, block);
    void* parameters[] = {block};
    CUlaunchConfig config;
    config.grid_x = static_cast<unsigned>(values.data[launch.grid_x]);
    config.block_x = static_cast<unsigned>(launch.threads);
    config.shared_bytes = static_cast<unsigned>(launch.smem_bytes);
    config.stream = static_cast<CUstream>(stream);
    // The driver takes a CUkernel, which belongs to no context, in place of a CUfunction.
    result = device.driver->cuLaunchKernelEx(
        &config, reinterpret_cast<CUfunction>(kernel.module.kernels[i]), parameters, nullptr);
  }
  if (result == kCudaSuccess) {
    kernel.publisher.release();
    return true;
  }
  diagnostics.add(error(kernel, Code::kDriverCall,
                        " cannot be launched: " + driver_error_text(*device.driver, result)));
  return false;
}

HostTensor host_tensor(const BoundTensor& bound) {
  HostTensor tensor;
  tensor.data = bound.data;
  std::copy_n(bound.stride, kMaxRank, tensor.stride);
  return tensor;
}

bool run_on_host(const KernelState& kernel, const BoundLaunch& bound, Diagnostics& diagnostics) {
  HostArgs args;
  args.n_b = bound.shape.n_b;
  args.n_h = bound.shape.n_h;
  args.n_h_kv = bound.shape.n_h_kv;
  args.n_q = bound.shape.n_q;
  args.n_k = bound.shape.n_k;
  args.q = host_tensor(bound[TensorRole::kQ]);
  args.k = host_tensor(bound[TensorRole::kK]);
  args.v = host_tensor(bound[TensorRole::kV]);
  args.o = host_tensor(bound[TensorRole::kO]);
  args.lse = host_tensor(bound[TensorRole::kLse]);
  args.counts = host_tensor(bound[TensorRole::kCounts]);
  args.tile_mask = host_tensor(bound[TensorRole::kTileMask]);
  args.list_indices = host_tensor(bound[TensorRole::kListIndices]);
  args.list_counts = host_tensor(bound[TensorRole::kListCounts]);
  args.params = bound.params.data();
  args.threads = kernel.engine->settings.threads;
  if (kernel.host.backend == nullptr) {
    run_interpreted(kernel.plan.program, args);
    return true;
  }
  char text[kErrorBytes] = {};
  if (kernel.host.backend->run(kernel.host.code, &args, text, sizeof(text)) == 0) return true;
  diagnostics.add(error(kernel, Code::kHostFailed, " failed on the CPU: " + std::string(text)));
  return false;
}

}  // namespace

std::size_t workspace_bytes(const KernelState& kernel, const LaunchShape& shape) {
  LaunchValues values;
  compute_values(kernel, shape, values);
  return workspace_of(kernel, values);
}

bool launch_kernel(KernelState& kernel, const lacuna_launch_args& args, Diagnostics& diagnostics) {
  const bool on_gpu = kernel.engine->gpu != nullptr;
  if (!check_process(*kernel.engine, diagnostics)) return false;
  if (on_gpu && !kernel.ready.load(std::memory_order_acquire)) {
    diagnostics.add(error(kernel, Code::kNotPrepared,
                          " is not prepared: a launch never compiles or loads; call "
                          "lacuna_prepare first"));
    return false;
  }
  BoundLaunch bound;
  if (!bind_launch(kernel.contract, args, bound, diagnostics)) return false;
  if (bound.empty()) return true;
  LaunchValues values;
  compute_values(kernel, bound.shape, values);
  if (!check_workspace(kernel, values, args, diagnostics)) return false;
  return on_gpu ? launch_on_gpu(kernel, bound, values, args.stream, diagnostics)
                : run_on_host(kernel, bound, diagnostics);
}

}  // namespace lacuna
