// Dense causal attention on the CPU backend beside OpenBLAS sgemm, same machine, threads and run.
//
// 4096 tokens, 4 heads, d = 128. GFLOP/s counts the two products over the causal half. `of_sgemm`
// is the ratio to a square sgemm of 2048 with the best kernel OpenBLAS has for this machine, timed
// right before; the best round of both counts. The goal is 0.5 or more. LACUNA_BENCH_THREADS:
// threads of both; default all.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compiler/target/plan.hpp"
#include "runtime/cpu/host_plugin.hpp"

namespace lacuna {
namespace {

constexpr int kTokens = 4096, kHeads = 4, kHeadDim = 128;
constexpr int kGemm = 2048;
constexpr int kRounds = 20;  // of which the best counts: machines are shared

int thread_count() {
  const char* chosen = std::getenv("LACUNA_BENCH_THREADS");
  return chosen != nullptr ? std::atoi(chosen)
                           : static_cast<int>(std::thread::hardware_concurrency());
}

/// The two functions of OpenBLAS in use; null where it is not installed.
struct OpenBlas {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                float*, int) = nullptr;
  void (*set_threads)(int) = nullptr;
  char* (*core_name)() = nullptr;
};

OpenBlas open_blas() {
  unsetenv("OPENBLAS_CORETYPE");  // the best kernel, not one chosen for portability
  OpenBlas blas;
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return blas;
  blas.sgemm = reinterpret_cast<decltype(blas.sgemm)>(dlsym(library, "cblas_sgemm"));
  blas.set_threads =
      reinterpret_cast<decltype(blas.set_threads)>(dlsym(library, "openblas_set_num_threads"));
  blas.core_name =
      reinterpret_cast<decltype(blas.core_name)>(dlsym(library, "openblas_get_corename"));
  return blas;
}

const OpenBlas& blas() {
  static const OpenBlas loaded = open_blas();
  return loaded;
}

/// GFLOP/s of the best of several square products; 0 without OpenBLAS.
double sgemm_gflops() {
  if (blas().sgemm == nullptr) return 0;
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  const auto size = static_cast<std::size_t>(kGemm) * kGemm;
  const std::vector<float> a(size, 0.5F), b(size, 0.25F);
  std::vector<float> c(size);
  blas().set_threads(thread_count());
  double best_s = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    blas().sgemm(kRowMajor, kNoTranspose, kNoTranspose, kGemm, kGemm, kGemm, 1, a.data(), kGemm,
                 b.data(), kGemm, 0, c.data(), kGemm);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best_s = std::min(best_s, elapsed.count());
  }
  return 2.0 * kGemm * kGemm * kGemm / best_s * 1e-9;
}

std::string program_text(DType dtype) {
  Diagnostics diagnostics;
  const SpecDocument document = read_spec(
      {.path = "<bench>",
       .text = R"json({"version": 1, "name": "causal", "attention": {"mask": "k <= q"}})json"},
      diagnostics);
  const Plan plan =
      make_plan(document, {.head_dim = kHeadDim, .dtype = dtype}, *find_target("cpu"), diagnostics);
  return print_program(plan.program);
}

/// Four tensors [1, heads, tokens, d] of random bits that are small numbers in the dtype.
struct Tensors {
  std::array<std::vector<std::uint8_t>, 4> bytes;
  HostArgs args;

  explicit Tensors(DType dtype) {
    std::mt19937 random(1);
    HostTensor* const tensors[] = {&args.q, &args.k, &args.v, &args.o};
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      bytes[n].resize(static_cast<std::size_t>(kHeads * kTokens * kHeadDim * size_bytes(dtype)));
      for (std::size_t at = 0; at < bytes[n].size(); at += 2) {
        bytes[n][at] = static_cast<std::uint8_t>(random());
        bytes[n][at + 1] = static_cast<std::uint8_t>(0x3e | (random() & 0x80U));
      }
      tensors[n]->data = bytes[n].data();
      tensors[n]->stride[0] = std::int64_t{kHeads} * kTokens * kHeadDim;
      tensors[n]->stride[1] = std::int64_t{kTokens} * kHeadDim;
      tensors[n]->stride[2] = kHeadDim;
      tensors[n]->stride[3] = 1;
    }
    args.n_b = 1;
    args.n_h = args.n_h_kv = kHeads;
    args.n_q = args.n_k = kTokens;
    args.threads = thread_count();
  }
};

void attend_causal(benchmark::State& state, DType dtype) {
  const HostPlugin plugin = load_host_plugin();
  if (plugin.backend == nullptr) return state.SkipWithError(plugin.missing.c_str());
  const double sgemm = sgemm_gflops();
  const std::string text = program_text(dtype);
  void* kernel = nullptr;
  std::array<char, 1024> error{};
  if (plugin.backend->compile(text.data(), text.size(), &kernel, error.data(), error.size()) != 0)
    return state.SkipWithError(error.data());
  const Tensors tensors(dtype);
  double best_s = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    plugin.backend->run(kernel, &tensors.args, error.data(), error.size());
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(elapsed.count());
    best_s = std::min(best_s, elapsed.count());
  }
  plugin.backend->release(kernel);
  const double flops = 2.0 * 2.0 * kTokens * kTokens / 2.0 * kHeadDim * kHeads;
  state.counters["GFLOP/s"] = flops / best_s * 1e-9;
  state.counters["sgemm_GFLOP/s"] = sgemm;
  if (sgemm > 0) state.counters["of_sgemm"] = flops / best_s * 1e-9 / sgemm;
  state.counters["threads"] = thread_count();
}

BENCHMARK_CAPTURE(attend_causal, f32, DType::kF32)
    ->UseManualTime()
    ->Iterations(kRounds)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(attend_causal, bf16, DType::kBF16)
    ->UseManualTime()
    ->Iterations(kRounds)
    ->Unit(benchmark::kMillisecond);

void compile_kernel(benchmark::State& state) {
  const HostPlugin plugin = load_host_plugin();
  if (plugin.backend == nullptr) return state.SkipWithError(plugin.missing.c_str());
  const std::string text = program_text(DType::kBF16);
  std::array<char, 1024> error{};
  for (auto _ : state) {
    void* kernel = nullptr;
    plugin.backend->compile(text.data(), text.size(), &kernel, error.data(), error.size());
    plugin.backend->release(kernel);
  }
}
BENCHMARK(compile_kernel)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const lacuna::OpenBlas& blas = lacuna::blas();
  std::fprintf(stderr, "OpenBLAS: %s\n",
               blas.core_name != nullptr ? blas.core_name() : "not installed, no ratio");
  benchmark::RunSpecifiedBenchmarks();
}
