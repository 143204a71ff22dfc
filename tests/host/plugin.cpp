#include "tests/host/plugin.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "compiler/target/plan.hpp"

namespace lacuna::host_tests {
namespace {

const HostBackend* open_backend() {
  void* library = dlopen(plugin_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  using Entry = const HostBackend*(std::uint32_t);
  auto* entry = reinterpret_cast<Entry*>(dlsym(library, "lacuna_host_backend"));
  return entry == nullptr ? nullptr : entry(kHostBackendAbi);
}

#ifndef LACUNA_HAS_HOST_PLUGIN
struct NoPlugin : testing::Environment {
  void SetUp() override { GTEST_SKIP() << "built without the CPU backend (LACUNA_LLVM=OFF)"; }
};
[[maybe_unused]] const testing::Environment* const no_plugin =
    testing::AddGlobalTestEnvironment(new NoPlugin);
#endif

}  // namespace

std::string plugin_path() { return LACUNA_BINARY_DIR "/bin/liblacuna_host.so"; }

const HostBackend& backend() {
  static const HostBackend* const table = open_backend();
  if (table == nullptr) {
    ADD_FAILURE() << plugin_path() << " does not open";
    std::abort();
  }
  return *table;
}

Program program_of(const std::string& spec_json, int head_dim, DType dtype) {
  Diagnostics diagnostics;
  const SpecDocument document = read_spec({.path = "<test>", .text = spec_json}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  const std::optional<Target> cpu = find_target("cpu");
  EXPECT_TRUE(cpu.has_value());
  const Plan plan = make_plan(document, {.head_dim = head_dim, .dtype = dtype}, *cpu, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  return plan.program;
}

CompiledKernel::CompiledKernel(const Program& program) {
  const std::string text = print_program(program);
  std::array<char, 4096> error{};
  const int status =
      backend().compile(text.data(), text.size(), &kernel_, error.data(), error.size());
  EXPECT_EQ(status, 0) << error.data() << "\n" << text;
}

CompiledKernel::~CompiledKernel() { backend().release(kernel_); }

std::string CompiledKernel::run(const HostArgs& args) const {
  std::array<char, 4096> error{};
  return backend().run(kernel_, &args, error.data(), error.size()) == 0 ? "" : error.data();
}

std::string CompiledKernel::llvm_ir() const { return backend().llvm_ir(kernel_); }

}  // namespace lacuna::host_tests
