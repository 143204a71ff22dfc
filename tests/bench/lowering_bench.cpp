// Lowering: the text of a spec -> kernel.cu and launch program, for each shipped spec. Goal: less
// than 1 ms each.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"

namespace {

void lower(benchmark::State& state, const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const lacuna::Target target = lacuna::find_target("sm_90a").value();
  for (auto _ : state) {
    lacuna::Diagnostics diagnostics;
    const auto document = lacuna::read_spec({path.string(), text.str()}, diagnostics);
    for (const lacuna::SpecDocument& attend : lacuna::branch_documents(document)) {
      const auto plan = lacuna::make_plan(attend, {}, target, diagnostics);
      benchmark::DoNotOptimize(lacuna::emit_cuda(plan, attend));
      benchmark::DoNotOptimize(lacuna::emit_launch_program(plan));
    }
    if (diagnostics.has_errors()) state.SkipWithError("the spec has errors");
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& entry : std::filesystem::directory_iterator(LACUNA_SOURCE_DIR "/specs")) {
    const std::filesystem::path path = entry.path();
    if (path.extension() != ".json" || path.stem() == "schema") continue;
    benchmark::RegisterBenchmark(("lower/" + path.stem().string()).c_str(),
                                 [path](benchmark::State& state) { lower(state, path); })
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
