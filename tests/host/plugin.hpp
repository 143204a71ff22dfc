// The CPU backend as a host sees it: the plugin opened by path, specs compiled through its table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"

namespace lacuna::host_tests {

/// Path of the plugin of this build, and its table.
std::string plugin_path();
const HostBackend& backend();

/// Spec text -> Program with its tiles chosen. Fails the running test if the spec is not legal.
Program program_of(const std::string& spec_json, int head_dim, DType dtype);

/// A compiled Program; fails the running test if it does not compile.
class CompiledKernel {
 public:
  explicit CompiledKernel(const Program& program);
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  /// The error text, or "".
  std::string run(const HostArgs& args) const;
  std::string llvm_ir() const;

 private:
  void* kernel_ = nullptr;
};

}  // namespace lacuna::host_tests
