// NVRTC: each kernel of each shipped spec, for each architecture and head dim, on one thread. Needs
// no GPU. Goal: less than 1.5 s for any of them.
//
//   compile_bench --benchmark_filter=sm_90a/bsfa
#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace {

namespace fs = std::filesystem;
using NvrtcHandle = std::shared_ptr<const lacuna::Nvrtc>;

constexpr const char* kArchitectures[] = {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"};
constexpr int kHeadDims[] = {64, 128, 256};

void compile(benchmark::State& state, const NvrtcHandle& nvrtc, const lacuna::CudaSource& source,
             const std::string& target) {
  for (auto _ : state) {
    lacuna::Diagnostics diagnostics;
    benchmark::DoNotOptimize(
        lacuna::compile_cuda(*nvrtc, source, target, {.threads = 1}, diagnostics));
    if (diagnostics.has_errors()) state.SkipWithError(diagnostics.items.front().message.c_str());
  }
}

/// One benchmark for each kernel of a plan. What a target or a head dim refuses has none.
void register_kernels(const NvrtcHandle& nvrtc, const lacuna::SpecDocument& document,
                      const std::string& target, int head_dim) {
  lacuna::Diagnostics refusals;
  const auto plan = lacuna::make_plan(document, {.head_dim = head_dim},
                                      lacuna::find_target(target).value(), refusals);
  if (refusals.has_errors()) return;
  const lacuna::CudaSource source = lacuna::emit_cuda(plan, document);
  for (const lacuna::CudaKernel& kernel : source.kernels) {
    const std::string name =
        target + "/" + document.spec.name + "/d" + std::to_string(head_dim) + "/" + kernel.name;
    const lacuna::CudaSource alone{source.head, {kernel}, source.options};
    benchmark::RegisterBenchmark(
        name.c_str(), [=](benchmark::State& state) { compile(state, nvrtc, alone, target); })
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
}

}  // namespace

int main(int argc, char** argv) {
  lacuna::Diagnostics diagnostics;
  const NvrtcHandle nvrtc = lacuna::load_nvrtc(0, diagnostics);
  if (nvrtc == nullptr) {
    std::fprintf(stderr, "%s\n", diagnostics.items.front().message.c_str());
    return 3;
  }
  for (const auto& entry : fs::directory_iterator(LACUNA_SOURCE_DIR "/specs")) {
    const fs::path path = entry.path();
    if (path.extension() != ".json" || path.stem() == "schema") continue;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const auto document = lacuna::read_spec({path.string(), text.str()}, diagnostics);
    for (const lacuna::SpecDocument& attend : lacuna::branch_documents(document)) {
      for (const char* target : kArchitectures) {
        for (const int head_dim : kHeadDims) register_kernels(nvrtc, attend, target, head_dim);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
