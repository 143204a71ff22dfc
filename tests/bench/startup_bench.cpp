// What a host application waits for: engine, compile, prepare, first launch, and then each launch,
// in microseconds; also each launch on a batch of sequences. Prints one JSON object; the cache is
// whatever LACUNA_CACHE_DIR holds, so run it twice for cold and warm.
//
//   startup_bench specs/bsfa.json [cuda:0]
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

constexpr const char* kEmptyKernel = R"(
struct Args { char bytes[512]; };
extern "C" __global__ void empty(const __grid_constant__ Args args) {})";

/// The driver's own price of a launch: an empty kernel with as large an argument block.
double raw_launch_us(const lacuna::Device& device, lacuna::CUstream stream, int launches) {
  lacuna::Diagnostics diagnostics;
  const auto nvrtc = lacuna::load_nvrtc(0, diagnostics);
  if (!nvrtc) return -1;
  const lacuna::CudaSource source{"", {{"empty", "empty", kEmptyKernel}}, {"-std=c++17"}};
  const std::string target =
      "sm_" + std::to_string(compute_capability(*device.driver, device.index));
  const auto built = compile_cuda(*nvrtc, source, target, {}, diagnostics);
  const lacuna::ContextScope scope(device);
  lacuna::CUlibrary library = nullptr;
  lacuna::CUkernel kernel = nullptr;
  const lacuna::Driver& driver = *device.driver;
  if (driver.cuLibraryLoadData(&library, built.cubins.at(0).data(), nullptr, nullptr, 0, nullptr,
                               nullptr, 0) ||
      driver.cuLibraryGetKernel(&kernel, library, "empty"))
    return -1;
  std::vector<char> block(512);
  void* parameters[] = {block.data()};
  lacuna::CUlaunchConfig config;
  config.stream = stream;
  config.block_x = 256;
  const auto function = reinterpret_cast<lacuna::CUfunction>(kernel);
  driver.cuLaunchKernelEx(&config, function, parameters, nullptr);
  driver.cuStreamSynchronize(stream);
  const auto begin = Clock::now();
  for (int x = 0; x < launches; ++x)
    driver.cuLaunchKernelEx(&config, function, parameters, nullptr);
  const double us = us_since(begin) / launches;
  driver.cuStreamSynchronize(stream);
  return us;
}

constexpr int kLaunches = 500;  // below the depth at which the driver's queue pushes back

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

double launch_us(const lacuna::Kernel& kernel, const lacuna::LaunchArgs& args) {
  const auto begin = Clock::now();
  for (int x = 0; x < kLaunches; ++x) kernel.launch(args);
  return us_since(begin) / kLaunches;
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
  const double us = launch_us(kernel, inputs.args);
  stream.synchronize(diagnostics);
  return us;
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

  const double uniform_us = launch_us(kernel, inputs.args);
  stream.synchronize(diagnostics);
  const double sequences_us = sequences_launch_us(engine, device, stream);
  const double raw_us = raw_launch_us(*device, stream.handle(), kLaunches);

  std::printf(
      "{\"context_us\": %.0f, \"engine_us\": %.0f, \"compile_us\": %.0f, \"prepare_us\": %.0f, "
      "\"first_launch_us\": %.0f, \"first_result_us\": %.0f, \"launch_us\": %.2f, "
      "\"sequences_launch_us\": %.2f, \"raw_launch_us\": %.2f}\n",
      context_us, engine_us, compile_us, prepare_us, first_launch_us, first_result_us, uniform_us,
      sequences_us, raw_us);
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
