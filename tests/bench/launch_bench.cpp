// What a launch pays for its expressions: those of specs/bsfa.json on sm_90a.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/emit/emit.hpp"

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

}  // namespace
}  // namespace lacuna

BENCHMARK_MAIN();
