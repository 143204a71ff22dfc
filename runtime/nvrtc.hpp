// NVRTC, opened at run time (notes: no toolkit at build time, no subprocess, no header search).
// Source text + embedded headers -> cubin + resource report. Needs no GPU and no driver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/emit/emit.hpp"

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

struct KernelResources {
  std::string name;
  int registers = 0, spill_bytes = 0, stack_bytes = 0, smem_bytes = 0;
};

struct Compilation {
  std::string cubin;  ///< empty on failure
  std::string ptx;    ///< only if asked for
  std::string log;
  double compile_ms = 0;
  std::vector<KernelResources> kernels;
};

/// Compiles on a thread of its own (8 MiB stack) with the options of the source, which name the
/// architecture too; `target` is for messages. On failure adds kNvrtcFailed with NVRTC's log, whose
/// lines point into the spec where #line directives lead there. `template_path` replaces the
/// embedded headers.
Compilation compile_cuda(const Nvrtc& nvrtc, const CudaSource& source, const std::string& target,
                         const std::string& template_path, bool want_ptx, Diagnostics& diagnostics);

}  // namespace lacuna
