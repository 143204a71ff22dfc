// What the kernel store costs: a key, a hit, a miss, a publish, and making room among many entries.
// The entry has the size of a real attention kernel.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "cache/store.hpp"

namespace {

using namespace lacuna::cache;

constexpr std::size_t kCubinBytes = 65'000;

/// A store in a new directory, removed at the end.
struct ScratchStore {
  std::string path;
  std::unique_ptr<Store> store;

  ScratchStore() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lacuna-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path = pattern;
    StoreOptions options;
    options.directory = path + "/cache";
    options.lock_directory = path + "/locks";
    store = std::make_unique<Store>(std::move(options));
  }
  ~ScratchStore() {
    store.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

Key key_number(int number, std::size_t source_bytes = 100) {
  const std::string source(source_bytes, 's');
  return make_key({sha256_hex(source + std::to_string(number)),
                   {"--minimal", "-default-device", "--std=c++17"},
                   "sm_90a"});
}

Entry entry_for(const Key& key, std::size_t cubin_bytes = kCubinBytes) {
  std::string cubin(cubin_bytes, 'x');
  std::memcpy(cubin.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  std::memcpy(cubin.data() + 18, "\xbe\x00", 2);
  return {key.text, R"({"kernels": []})", "ptxas info", {cubin}};
}

void make_key_of_source(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(key_number(1, static_cast<std::size_t>(state.range(0))));
  }
}
BENCHMARK(make_key_of_source)->Arg(100)->Arg(60'000)->Unit(benchmark::kMicrosecond);

void hit(benchmark::State& state) {
  const ScratchStore scratch;
  const Key key = key_number(1);
  if (!scratch.store->publish(key, entry_for(key))) return state.SkipWithError("not published");
  for (auto _ : state) benchmark::DoNotOptimize(scratch.store->load(key));
}
BENCHMARK(hit)->Unit(benchmark::kMicrosecond);

void miss(benchmark::State& state) {
  const ScratchStore scratch;
  const Key key = key_number(1), other = key_number(2);
  if (!scratch.store->publish(other, entry_for(other))) return state.SkipWithError("not published");
  for (auto _ : state) benchmark::DoNotOptimize(scratch.store->load(key));
}
BENCHMARK(miss)->Unit(benchmark::kMicrosecond);

void obtain_and_publish(benchmark::State& state) {
  const ScratchStore scratch;
  int number = 0;
  for (auto _ : state) {
    const Key key = key_number(++number);
    const auto built = scratch.store->obtain(key, [&] { return entry_for(key); });
    benchmark::DoNotOptimize(scratch.store->publish(key, *built.entry));
  }
}
BENCHMARK(obtain_and_publish)->Unit(benchmark::kMicrosecond)->Iterations(500);

void look_for_room_among(benchmark::State& state) {
  const ScratchStore scratch;
  for (int i = 0; i < state.range(0); ++i) {
    const Key key = key_number(i);
    scratch.store->publish(key, entry_for(key, 64));
  }
  for (auto _ : state) benchmark::DoNotOptimize(scratch.store->prune(std::uint64_t{1} << 40));
}
BENCHMARK(look_for_room_among)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
