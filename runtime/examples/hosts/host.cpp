// A host in C++: block-sparse attention of 4 heads over 1024 tokens, with what a server needs
// around it: kernels that were embedded when it was built, events to a log, and one place for
// failures.
#include <cstdint>
#include <cstdio>
#include <lacuna/lacuna.hpp>
#include <random>
#include <string>
#include <vector>

#if __has_include("host_cpp_kernels.h")
#include "host_cpp_kernels.h"
#define HAS_KERNELS 1
#else
#define HAS_KERNELS 0
#endif

namespace {

constexpr std::int64_t kHeads = 4, kHeadsKv = 2, kTokens = 1024, kHeadDim = 64;

std::vector<float> random_values(std::int64_t heads, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(heads * kTokens * kHeadDim));
  for (float& value : values) value = normal(generator);
  return values;
}

lacuna::Tensor tensor(const std::vector<float>& values, std::int64_t heads) {
  return {values.data(), lacuna::f32, {1, heads, kTokens, kHeadDim}};
}

lacuna::Engine make_engine() {
  lacuna::EngineOptions options;
  options.device = "cpu";  // empty: the first GPU; tensors then lie in its memory
  options.on_event = [](const char* event, const char* detail_json) {
    std::fprintf(stderr, "lacuna %s: %s\n", event, detail_json);
  };
  auto engine = lacuna::Engine::create(options);
#if HAS_KERNELS
  engine.add_kernels(host_cpp_kernels, host_cpp_kernels_bytes);
#endif
  return engine;
}

/// Tiles that were computed and gated, and whether O is finite.
void report(const std::vector<std::int32_t>& counts, const std::vector<float>& o) {
  long visited = 0, gated = 0;
  for (std::size_t n = 0; n + 2 < counts.size(); n += 3) {
    visited += counts[n + 1];
    gated += counts[n + 2];
  }
  double sum = 0;
  for (const float value : o) sum += static_cast<double>(value);
  std::printf("%ld tiles visited, %ld of them gated, mean of o %.4f\n", visited, gated,
              sum / static_cast<double>(o.size()));
}

void run() {
  const auto engine = make_engine();
  auto kernel = engine.compile(lacuna::Spec::load(SPEC_DIR "/bsfa.json"),
                               {.head_dim = kHeadDim, .dtype = lacuna::f32});
  kernel.prepare();  // once, when the server starts: launches compile and load nothing

  const std::vector<float> q = random_values(kHeads, 1), k = random_values(kHeadsKv, 2);
  const std::vector<float> v = random_values(kHeadsKv, 3);
  std::vector<float> o(q.size());
  const std::int64_t q_tiles = (kTokens + kernel.tile().q - 1) / kernel.tile().q;
  std::vector<std::int32_t> counts(static_cast<std::size_t>(kHeads * q_tiles * 3));
  const std::size_t bytes = kernel.workspace_bytes(
      {.heads = kHeads, .heads_kv = kHeadsKv, .n_q = kTokens, .n_k = kTokens});
  std::vector<char> workspace(bytes);  // 0 on the CPU; on a GPU device memory, 256-byte aligned

  kernel.launch({.q = tensor(q, kHeads),
                 .k = tensor(k, kHeadsKv),
                 .v = tensor(v, kHeadsKv),
                 .o = tensor(o, kHeads),
                 .counts = {counts.data(), lacuna::i32, {1, kHeads, q_tiles, 3}},
                 .params = {{"threshold", 3.75}},
                 .workspace = workspace.data(),
                 .workspace_bytes = bytes});
  report(counts, o);
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const lacuna::Error& error) {
    std::fprintf(stderr, "%s", error.what());
    return error.status();
  }
}
