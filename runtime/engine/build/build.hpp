// Plan -> cubins: emit, look the key up, compile with NVRTC on a miss. Needs no GPU and no driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/store.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {

/// Asked when something has to be compiled. Null, with diagnostics, where nothing can or may be.
using FindNvrtc = std::function<std::shared_ptr<const Nvrtc>(Diagnostics&)>;

/// One that has been found already.
inline FindNvrtc at_hand(std::shared_ptr<const Nvrtc> nvrtc) {
  return [nvrtc = std::move(nvrtc)](Diagnostics&) { return nvrtc; };
}

struct BuildRequest {
  const Plan& plan;
  const SpecDocument& document;
  FindNvrtc nvrtc;
  cache::Store* store = nullptr;  ///< null: always compile
  std::string template_path;      ///< empty: the embedded headers
  bool want_ptx = false;          ///< compiles even on a hit: entries hold no PTX
  int threads = 0;                ///< of the compiler: NvrtcOptions::threads
  /// Name of the one kernel that is wanted; empty: all. It compiles even on a hit, and beside it
  /// those that decide whether the plan is relieved: attend, and what else multiplies by wgmma.
  std::string only{};
  /// What `plan` was made with. If given, a plan whose kernel spills gives way to one that takes
  /// fewer registers (runtime/engine/build/relieve.hpp).
  const BuildOptions* options = nullptr;
};

struct BuiltKernel {
  CudaSource source;  ///< with the kernels that were compiled
  cache::Key key;
  cache::Entry entry;            ///< what belongs into the store; entry.cubins: one for each kernel
  std::vector<std::string> ptx;  ///< the same, only if asked for
  bool hit = false;              ///< the entry came from the store
  double compile_ms = 0;         ///< of the compilation that made the entry, also on a hit
  /// One for each kernel of the source, in its order. smem_bytes counts static and dynamic shared
  /// memory.
  std::vector<KernelResources> kernels;
  std::optional<Plan> relieved;  ///< what was compiled in place of the request's plan
  int relief = 0;                ///< its BuildOptions::relief
};

/// Empty `entry.cubins` mean failure, with the reason in `diagnostics`. Nothing is published:
/// the caller does that once the code has proved itself (`store->publish(key, entry)`).
BuiltKernel build_kernel(const BuildRequest& request, Diagnostics& diagnostics);

/// Of the text without what only names files and lines.
std::string source_sha256(const CudaSource& source);

/// The key alone: needs the generated text, compiles nothing. Whichever NVRTC compiles, it is the
/// same.
cache::Key kernel_key(const CudaSource& source, const std::string& target,
                      const std::string& template_path, Diagnostics& diagnostics);

}  // namespace lacuna
