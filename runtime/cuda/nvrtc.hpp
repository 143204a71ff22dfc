// NVRTC, opened at run time: no toolkit is needed to build, and no process is started. Source text
// and embedded headers become cubins and a report of their resources. Needs no GPU and no driver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/emit/emit.hpp"
#include "runtime/cuda/ptxas_log.hpp"

namespace lacuna {

struct Nvrtc;  ///< function table of a loaded libnvrtc; never unloaded

struct NvrtcInfo {
  std::string path;  ///< of the libnvrtc that was loaded
  int major = 0, minor = 0;
  std::string build_id;               ///< ELF build-id, hex
  std::vector<std::string> searched;  ///< every place that was looked at, in order
};

/// Opens the newest NVRTC found whose major version is not above `max_major` (0: any). Order:
/// LACUNA_NVRTC_PATH, already loaded, beside this library, CUDA_HOME, the loader's path, Python
/// wheels. Null with one diagnostic (kNoNvrtc) that names what was searched.
std::shared_ptr<const Nvrtc> load_nvrtc(int max_major, Diagnostics& diagnostics);
const NvrtcInfo& info(const Nvrtc& nvrtc);

struct NvrtcOptions {
  std::string template_path{};  ///< its headers replace the embedded ones; empty: those
  bool want_ptx = false;
  int threads = 0;  ///< at most this many; 0: as many as the machine has
};

struct Compilation {
  std::vector<std::string> cubins;  ///< one for each kernel of the source; empty on failure
  std::vector<std::string> ptx;     ///< the same, only if asked for
  std::string log;                  ///< of all kernels, in their order
  double compile_ms = 0;
  std::vector<KernelResources> kernels;
};

/// Compiles each kernel as a program of its own, several at a time, on threads with large stacks
/// and with the options of the source, which name the architecture too; `target` is for messages.
/// On failure adds kNvrtcFailed with the log of the first kernel that cannot be compiled, whose
/// lines point into the spec where #line directives lead there. However many threads compile, the
/// code, the errors and the order of the log are the same.
Compilation compile_cuda(const Nvrtc& nvrtc, const CudaSource& source, const std::string& target,
                         const NvrtcOptions& options, Diagnostics& diagnostics);

}  // namespace lacuna
