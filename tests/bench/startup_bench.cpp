// What a host application waits for: engine, compile, prepare, first launch, and then each launch,
// in microseconds; also each launch on a batch of sequences, and what the driver asks for each of
// its calls that a launch makes. Prints one JSON object; the cache is whatever LACUNA_CACHE_DIR
// holds, so run it twice for cold and warm.
//
//   startup_bench specs/bsfa.json [cuda:0]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "lacuna/lacuna.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Launches between two waits for the GPU: few enough that the driver's queue never pushes back,
/// however long the kernels take.
constexpr int kLaunches = 64;
constexpr int kBatches = 15;

/// Host time of one call(), the median over batches; the GPU is idle when each of them begins.
template <class Call>
double call_us(const lacuna::DeviceStream& stream, const Call& call) {
  lacuna::Diagnostics diagnostics;
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = Clock::now();
    for (int n = 0; n < kLaunches; ++n) call();
    times.push_back(us_since(begin) / kLaunches);
    stream.synchronize(diagnostics);
  }
  std::ranges::nth_element(times, times.begin() + kBatches / 2);
  return times[kBatches / 2];
}

/// As large an argument block as that of a batch of sequences.
constexpr const char* kEmptyKernel = R"(
struct Args { char bytes[1024]; };
extern "C" __global__ void empty(const __grid_constant__ Args args) {})";
constexpr std::size_t kBlockBytes = 1024;

/// The driver's own price of what a launch asks of it, in microseconds; -1: unknown.
struct DriverPrices {
  double launch = -1;              ///< of an empty kernel
  double launch_of_function = -1;  ///< the same by CUfunction in place of CUkernel
  double overlapping_launch = -1;  ///< the same, allowed to begin before the one ahead has ended
  double tensor_map = -1;
  double clear = -1;  ///< 256 bytes of zeros
  double context = -1;
};

lacuna::CUkernel load_empty_kernel(const lacuna::Device& device) {
  lacuna::Diagnostics diagnostics;
  const lacuna::Driver& driver = *device.driver;
  const auto nvrtc = lacuna::load_nvrtc(driver.cuda_version / 1000, diagnostics);
  if (!nvrtc) return nullptr;
  const std::string target = "sm_" + std::to_string(compute_capability(driver, device.index));
  const lacuna::CudaSource source{
      "", {{"empty", "empty", kEmptyKernel}}, {"--gpu-architecture=" + target}};
  const auto built = compile_cuda(*nvrtc, source, target, {}, diagnostics);
  lacuna::CUlibrary library = nullptr;
  lacuna::CUkernel kernel = nullptr;
  if (built.cubins.empty() ||
      driver.cuLibraryLoadData(&library, built.cubins[0].data(), nullptr, nullptr, 0, nullptr,
                               nullptr, 0) ||
      driver.cuLibraryGetKernel(&kernel, library, "empty")) {
    std::fputs(render(diagnostics, {}).c_str(), stderr);
    return nullptr;
  }
  return kernel;
}

void price_launches(const lacuna::Device& device, const lacuna::DeviceStream& stream,
                    DriverPrices& prices) {
  const lacuna::Driver& driver = *device.driver;
  const lacuna::CUkernel kernel = load_empty_kernel(device);
  lacuna::CUfunction function = nullptr;
  if (kernel == nullptr || driver.cuKernelGetFunction(&function, kernel)) return;
  std::vector<char> block(kBlockBytes);
  void* parameters[] = {block.data()};
  lacuna::CUlaunchConfig config;
  config.stream = stream.handle();
  config.block_x = 256;
  const auto launch_us = [&](lacuna::CUfunction what) {
    driver.cuLaunchKernelEx(&config, what, parameters, nullptr);
    return call_us(stream, [&] { driver.cuLaunchKernelEx(&config, what, parameters, nullptr); });
  };
  prices.launch = launch_us(reinterpret_cast<lacuna::CUfunction>(kernel));
  prices.launch_of_function = launch_us(function);
  lacuna::CUlaunchAttribute overlaps;
  overlaps.id = lacuna::kLaunchProgrammaticStreamSerialization;
  overlaps.allowed = 1;
  config.attributes = &overlaps;
  config.attribute_count = 1;
  prices.overlapping_launch = launch_us(reinterpret_cast<lacuna::CUfunction>(kernel));
}

/// `memory`: at least 256 bytes of the device's.
DriverPrices price_driver(const lacuna::Device& device, const lacuna::DeviceStream& stream,
                          void* memory) {
  DriverPrices prices;
  const lacuna::Driver& driver = *device.driver;
  prices.context = call_us(stream, [&] { const lacuna::ContextScope scope(device); });
  const lacuna::ContextScope scope(device);
  price_launches(device, stream, prices);
  prices.clear = call_us(stream, [&] {
    driver.cuMemsetD8Async(reinterpret_cast<lacuna::CUdeviceptr>(memory), 0, 256, stream.handle());
  });
  alignas(64) unsigned char map[lacuna::kTensorMapBytes];
  const std::uint64_t extents[] = {64, 8192, 2, 8, 1}, strides[] = {256, 128, 1 << 21, 1 << 24};
  const std::uint32_t box[] = {64, 64, 1, 1, 1}, every[] = {1, 1, 1, 1, 1};
  prices.tensor_map = call_us(stream, [&] {
    driver.cuTensorMapEncodeTiled(map, lacuna::kTensorMapBFloat16, lacuna::kTensorMapRank, memory,
                                  extents, strides, box, every, lacuna::kTensorMapNoInterleave,
                                  lacuna::kTensorMapSwizzle128, lacuna::kTensorMapPromoteNone,
                                  lacuna::kTensorMapFillZeros);
  });
  return prices;
}

struct Inputs {
  std::vector<lacuna::DeviceBuffer> memory;
  lacuna::LaunchArgs args;
};

constexpr int kTokens = 128, kHeadDim = 128;

/// tensor := zeros in device memory, [1, heads, tokens, kHeadDim].
void put_zeros(Inputs& inputs, lacuna::Tensor& tensor, int heads, int tokens,
               const std::shared_ptr<const lacuna::Device>& device) {
  lacuna::Diagnostics diagnostics;
  const std::size_t rows = static_cast<std::size_t>(heads) * static_cast<std::size_t>(tokens);
  inputs.memory.emplace_back(device, rows * kHeadDim * 2, diagnostics);
  inputs.memory.back().fill_zero(diagnostics);
  tensor = lacuna::Tensor(inputs.memory.back().data(), lacuna::bf16, {1, heads, tokens, kHeadDim},
                          lacuna::cuda(device->index));
}

/// One small problem (1 head) with zero inputs; thresholds keep everything.
Inputs make_inputs(const std::shared_ptr<const lacuna::Device>& device,
                   const lacuna::DeviceStream& stream) {
  Inputs inputs;
  lacuna::Tensor* const tensors[] = {&inputs.args.q, &inputs.args.k, &inputs.args.v,
                                     &inputs.args.o};
  for (lacuna::Tensor* tensor : tensors) put_zeros(inputs, *tensor, 1, kTokens, device);
  inputs.args.params = {{"threshold", -1e30}};
  inputs.args.stream = stream.handle();
  return inputs;
}

/// As large as the kernel asks for at that shape.
void add_workspace(Inputs& inputs, const lacuna::Kernel& kernel, const lacuna::Shape& shape,
                   const std::shared_ptr<const lacuna::Device>& device) {
  lacuna::Diagnostics diagnostics;
  const std::size_t bytes = kernel.workspace_bytes(shape);
  if (bytes == 0) return;
  inputs.memory.emplace_back(device, bytes, diagnostics);
  inputs.args.workspace = inputs.memory.back().data();
  inputs.args.workspace_bytes = bytes;
}

double launch_us(const lacuna::Kernel& kernel, const lacuna::LaunchArgs& args,
                 const lacuna::DeviceStream& stream) {
  return call_us(stream, [&] { kernel.launch(args); });
}

constexpr int kSequences = 64, kHeads = 32, kHeadsKv = 8;

/// Dense attention of one query and kTokens keys of each of kSequences sequences, all zeros.
Inputs make_sequences(const std::shared_ptr<const lacuna::Device>& device,
                      const lacuna::DeviceStream& stream) {
  lacuna::Diagnostics diagnostics;
  Inputs inputs;
  const auto put_numbers = [&](lacuna::Tensor& tensor, const std::vector<std::int32_t>& numbers) {
    inputs.memory.emplace_back(device, numbers.size() * sizeof(numbers[0]), diagnostics);
    inputs.memory.back().copy_in(numbers.data(), numbers.size() * sizeof(numbers[0]), diagnostics);
    tensor =
        lacuna::Tensor(inputs.memory.back().data(), lacuna::i32,
                       {static_cast<std::int64_t>(numbers.size())}, lacuna::cuda(device->index));
  };
  put_zeros(inputs, inputs.args.q, kHeads, kSequences, device);
  put_zeros(inputs, inputs.args.o, kHeads, kSequences, device);
  put_zeros(inputs, inputs.args.k, kHeadsKv, kSequences * kTokens, device);
  put_zeros(inputs, inputs.args.v, kHeadsKv, kSequences * kTokens, device);
  std::vector<std::int32_t> q_begin, k_begin;
  for (int n = 0; n <= kSequences; ++n) q_begin.push_back(n);
  for (int n = 0; n < kSequences; ++n) k_begin.push_back(n * kTokens);
  lacuna::Sequences& sequences = inputs.args.sequences;
  sequences.count = kSequences;
  sequences.max_n_q = 1;
  sequences.max_n_k = kTokens;
  put_numbers(sequences.q_begin, q_begin);
  put_numbers(sequences.k_begin, k_begin);
  put_numbers(sequences.n_k, std::vector<std::int32_t>(kSequences, kTokens));
  inputs.args.stream = stream.handle();
  return inputs;
}

double sequences_launch_us(const lacuna::Engine& engine,
                           const std::shared_ptr<const lacuna::Device>& device,
                           const lacuna::DeviceStream& stream) {
  lacuna::Diagnostics diagnostics;
  auto kernel = engine.compile(lacuna::Spec::parse(R"({"version": 1, "name": "dense"})"),
                               {.head_dim = kHeadDim, .batch = lacuna::Batch::kSequences});
  kernel.prepare();
  Inputs inputs = make_sequences(device, stream);
  add_workspace(inputs, kernel, {kSequences, kHeads, kHeadsKv, 1, kTokens}, device);
  kernel.launch(inputs.args);
  stream.synchronize(diagnostics);
  return launch_us(kernel, inputs.args, stream);
}

int measure(const char* spec_path, int index) {
  const auto start = Clock::now();
  lacuna::Diagnostics diagnostics;
  const auto driver = lacuna::load_driver(diagnostics);
  const auto device = driver ? open_device(driver, index, diagnostics) : nullptr;
  if (!device) {
    std::fputs(render(diagnostics, {}).c_str(), stderr);
    return 3;
  }
  const lacuna::DeviceStream stream(device, diagnostics);
  Inputs inputs = make_inputs(device, stream);
  const double context_us = us_since(start);

  const auto begin = Clock::now();
  const auto engine = lacuna::Engine::create({"cuda:" + std::to_string(index), "", "", 0, nullptr});
  const double engine_us = us_since(begin);
  auto kernel = engine.compile(lacuna::Spec::load(spec_path), {kHeadDim});
  const double compile_us = us_since(begin) - engine_us;
  kernel.prepare();
  const double prepare_us = us_since(begin) - engine_us - compile_us;
  add_workspace(inputs, kernel, {1, 1, 1, kTokens, kTokens}, device);
  kernel.launch(inputs.args);
  const double first_launch_us = us_since(begin);
  stream.synchronize(diagnostics);
  const double first_result_us = us_since(begin);

  const double uniform_us = launch_us(kernel, inputs.args, stream);
  const double sequences_us = sequences_launch_us(engine, device, stream);
  const DriverPrices prices = price_driver(*device, stream, inputs.memory.front().data());

  std::printf(
      "{\"context_us\": %.0f, \"engine_us\": %.0f, \"compile_us\": %.0f, \"prepare_us\": %.0f, "
      "\"first_launch_us\": %.0f, \"first_result_us\": %.0f, \"launch_us\": %.2f, "
      "\"sequences_launch_us\": %.2f, \"raw_launch_us\": %.2f, \"driver_us\": "
      "{\"launch_of_function\": %.2f, \"overlapping_launch\": %.2f, \"tensor_map\": %.2f, "
      "\"clear\": %.2f, \"context\": %.2f}}\n",
      context_us, engine_us, compile_us, prepare_us, first_launch_us, first_result_us, uniform_us,
      sequences_us, prices.launch, prices.launch_of_function, prices.overlapping_launch,
      prices.tensor_map, prices.clear, prices.context);
  return diagnostics.has_errors() ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: startup_bench SPEC [cuda:N]\n");
    return 2;
  }
  const int index = argc > 2 ? std::atoi(argv[2] + std::strlen("cuda:")) : 0;
  try {
    return measure(argv[1], index);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
