// The plugin as a guest in a process: what it exports, what it says about bad input, and that it
// lives beside another LLVM.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "tests/host/run.hpp"

namespace lacuna::host_tests {
namespace {

const char* const kDense = R"json({"version": 1, "name": "dense"})json";

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) text += line.data();
  pclose(pipe);
  return text;
}

std::string compile_error(const std::string& text, std::size_t capacity = 4096) {
  void* kernel = nullptr;
  std::string error(capacity, '?');
  if (backend().compile(text.data(), text.size(), &kernel, error.data(), capacity) == 0) {
    backend().release(kernel);
    return "";
  }
  return error.c_str();
}

TEST(Plugin, ExportsExactlyOneSymbol) {
  if (output_of("command -v nm").empty()) GTEST_SKIP() << "nm is not installed";
  const std::string symbols =
      output_of("nm -D --defined-only --format=just-symbols " + plugin_path());
  EXPECT_EQ(symbols, "lacuna_host_backend\n");
}

TEST(Plugin, RefusesAnotherAbi) {
  void* library = dlopen(plugin_path().c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  using Entry = const HostBackend*(std::uint32_t);
  auto* entry = reinterpret_cast<Entry*>(dlsym(library, "lacuna_host_backend"));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry(kHostBackendAbi + 1), nullptr);
  EXPECT_NE(entry(kHostBackendAbi), nullptr);
}

TEST(Plugin, NamesLlvmAndTheCpu) {
  EXPECT_EQ(std::string(backend().version()).rfind("LLVM 19.", 0), 0U) << backend().version();
}

TEST(Plugin, ShowsTheOptimisedIrOfAKernel) {
  const CompiledKernel kernel(program_of(kDense, 64, DType::kBF16));
  for (const char* name : {"@scores_full(", "@softmax(", "@accumulate(", "@pack_k("})
    EXPECT_NE(kernel.llvm_ir().find(name), std::string::npos) << name;
}

TEST(Plugin, ReportsAProgramThatDoesNotParse) {
  const std::string error = compile_error("program @x(head_dim=64, dtype=bf16) {\n  nonsense\n}\n");
  EXPECT_NE(error.find("<program>:2:"), std::string::npos) << error;
}

TEST(Plugin, TruncatesAnErrorToItsBuffer) {
  const std::string error = compile_error("nonsense", 8);
  EXPECT_EQ(error, "<progra");
}

TEST(Plugin, ReportsAProgramWhoseTilesAreOpen) {
  Program program = program_of(kDense, 64, DType::kBF16);
  auto& attend = std::get<Attend>(program.nodes.back().op);
  attend.tile_q = attend.tile_k = 0;
  EXPECT_EQ(compile_error(print_program(program)),
            "dense, tile_q and tile_k: expected sizes, got a program whose tiles are still open");
}

struct BadArguments {
  const char* expected;
  void (*spoil)(HostArgs&);
};

TEST(Plugin, ReportsArgumentsByField) {
  const Program program = program_of(
      R"json({"version": 1, "name": "lists", "mask": "external",
              "attention": {"score": "s * gain"}, "params": {"gain": {"default": 1}}})json",
      64, DType::kF32);
  const CompiledKernel kernel(program);
  float storage[64] = {};
  std::int32_t count = 0;
  const ParamView gain;
  const BadArguments cases[] = {
      {"lists, q: expected a tensor, got none", [](HostArgs& a) { a.q.data = nullptr; }},
      {"lists, v: expected a tensor, got none", [](HostArgs& a) { a.v.data = nullptr; }},
      {"lists, o: expected a tensor, got none", [](HostArgs& a) { a.o.data = nullptr; }},
      {"lists, list_counts: expected a tensor, got none",
       [](HostArgs& a) { a.list_counts.data = nullptr; }},
      {"lists, params: expected 1, got none", [](HostArgs& a) { a.params = nullptr; }},
      {"lists, n_h_kv: expected a divisor of n_h = 1, got 2", [](HostArgs& a) { a.n_h_kv = 2; }},
      {"lists, shape: expected extents of at least 0, got n_q = -1",
       [](HostArgs& a) { a.n_q = -1; }},
  };
  for (const BadArguments& bad : cases) {
    HostArgs args;
    args.n_b = args.n_h = args.n_h_kv = args.n_q = args.n_k = 1;
    for (HostTensor* tensor : {&args.q, &args.k, &args.v, &args.o}) tensor->data = storage;
    args.list_indices.data = args.list_counts.data = &count;
    args.params = &gain;
    bad.spoil(args);
    EXPECT_EQ(kernel.run(args), bad.expected);
  }
}

TEST(Plugin, AsksForWhatKeysNeedWhereThereAreKeys) {
  const Program program = program_of(
      R"json({"version": 1, "name": "int8", "quantise": {"qk": {"bits": 8}, "v": {"bits": 8}},
        "tile": {"q": 32, "k": 32}})json",
      64, DType::kF32);
  const CompiledKernel kernel(program);
  float inputs[64] = {}, o[64] = {};
  HostArgs args;
  args.n_b = args.n_h = args.n_h_kv = args.n_q = 1;
  args.o.data = o;
  for (HostTensor* tensor : {&args.q, &args.q_scale, &args.v_scale}) tensor->data = inputs;
  EXPECT_EQ(kernel.run(args), "");
  args.n_k = 1;
  const std::pair<const char*, HostTensor*> of_keys[] = {
      {"k", &args.k}, {"v", &args.v}, {"k_scale", &args.k_scale}};
  for (const auto& [name, tensor] : of_keys) {
    EXPECT_EQ(kernel.run(args), "int8, " + std::string(name) + ": expected a tensor, got none");
    tensor->data = inputs;
  }
  EXPECT_EQ(kernel.run(args), "");
}

/// In a child process: loads `other` with its symbols global, then compiles through the plugin.
int compile_beside(const char* other) {
  const pid_t child = fork();
  if (child == 0) {
    if (dlopen(other, RTLD_NOW | RTLD_GLOBAL) == nullptr) _exit(77);
    void* library = dlopen(plugin_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) _exit(2);
    using Entry = const HostBackend*(std::uint32_t);
    auto* entry = reinterpret_cast<Entry*>(dlsym(library, "lacuna_host_backend"));
    const HostBackend* table = entry(kHostBackendAbi);
    void* kernel = nullptr;
    std::array<char, 256> error{};
    const std::string text = print_program(program_of(kDense, 64, DType::kF32));
    _exit(table->compile(text.data(), text.size(), &kernel, error.data(), error.size()) == 0 ? 0
                                                                                             : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class BesideAnotherLlvm : public testing::TestWithParam<const char*> {};

TEST_P(BesideAnotherLlvm, Compiles) {
  const int status = compile_beside(GetParam());
  if (status == 77) GTEST_SKIP() << GetParam() << " is not installed";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Global, BesideAnotherLlvm,
                         testing::Values("libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM.so.19.1"));

}  // namespace
}  // namespace lacuna::host_tests
