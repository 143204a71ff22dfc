// What a launch pays for its expressions: interpreted, and compiled by the CPU backend; and what
// compiling them costs. The expressions are those of specs/bsfa.json on sm_90a.
#include <benchmark/benchmark.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/emit/emit.hpp"
#include "compiler/expr/text/parse.hpp"
#include "runtime/cpu/host_plugin.hpp"

namespace lacuna {
namespace {

LaunchProgram launch_program() {
  const std::string path = LACUNA_SOURCE_DIR "/specs/bsfa.json";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  Diagnostics diagnostics;
  const SpecDocument document = read_spec({.path = path, .text = text.str()}, diagnostics);
  return emit_launch_program(make_plan(document, {.head_dim = 128, .dtype = DType::kBF16},
                                       *find_target("sm_90a"), diagnostics));
}

std::string lines_of(const LaunchProgram& program) {
  std::string lines;
  for (const LaunchValue& value : program.values) lines += print_expr(value.expr) + "\n";
  return lines;
}

constexpr LaunchShape kShape{.n_b = 1, .n_h = 32, .n_h_kv = 8, .n_q = 16384, .n_k = 16384};

void interpreted(benchmark::State& state) {
  const LaunchProgram program = launch_program();
  std::vector<std::int32_t> values(program.values.size());
  for (auto _ : state) {
    evaluate_launch_values(program, kShape, values.data());
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  state.counters["expressions"] = static_cast<double>(values.size());
}
BENCHMARK(interpreted);

void compiled(benchmark::State& state) {
  const HostPlugin plugin = load_host_plugin();
  if (plugin.backend == nullptr) return state.SkipWithError(plugin.missing.c_str());
  const std::string lines = lines_of(launch_program());
  std::array<char, 1024> error{};
  void* launch = nullptr;
  if (plugin.backend->compile_launch(lines.data(), lines.size(), &launch, error.data(),
                                     error.size()) != 0)
    return state.SkipWithError(error.data());
  const std::int32_t variables[] = {kShape.n_b, kShape.n_h, kShape.n_h_kv, kShape.n_q, kShape.n_k};
  std::vector<std::int32_t> values(launch_program().values.size());
  for (auto _ : state) {
    plugin.backend->run_launch(launch, variables, values.data());
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  plugin.backend->release_launch(launch);
}
BENCHMARK(compiled);

void compile(benchmark::State& state) {
  const HostPlugin plugin = load_host_plugin();
  if (plugin.backend == nullptr) return state.SkipWithError(plugin.missing.c_str());
  const std::string lines = lines_of(launch_program());
  std::array<char, 1024> error{};
  for (auto _ : state) {
    void* launch = nullptr;
    plugin.backend->compile_launch(lines.data(), lines.size(), &launch, error.data(), error.size());
    plugin.backend->release_launch(launch);
  }
}
BENCHMARK(compile)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lacuna

BENCHMARK_MAIN();
