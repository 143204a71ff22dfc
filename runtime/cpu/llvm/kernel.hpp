// One Program compiled for this CPU, and how to run it. Immutable after compile_kernel, so any
// number of threads may run it at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.hpp"
#include "runtime/cpu/host_backend.hpp"
#include "runtime/cpu/llvm/attend/frame.hpp"
#include "runtime/cpu/llvm/attend/panels.hpp"
#include "runtime/cpu/llvm/jit/jit.hpp"

namespace lacuna::host {

/// What a skipped scope leaves out, and which rows decide together.
struct GatePlan {
  bool by_group = false;   ///< 16 rows; otherwise all rows of the tile
  bool keeps_sum = false;  ///< only the product is skipped: maximum and denominator still count
};

struct Kernel {
  std::string name;
  Shape shape;
  DType dtype = DType::kBF16;
  bool descending = false, uses_lists = false;
  bool scales_qk = false, scales_v = false;  ///< quantised q and k; v of e4m3 codes
  int keep_k = 0;                            ///< keys of a gathered column; 0: no gathering
  std::optional<GatePlan> gate;
  float scale = 0;       ///< softmax scale where a launch brings none
  float lse_factor = 1;  ///< what a natural lse is multiplied by
  std::size_t param_count = 0;
  std::string ir;                ///< of both modules, one after the other, optimised
  Code own;                      ///< with formulas of the spec
  std::shared_ptr<Code> common;  ///< the other functions, with all kernels of the same shape
  Kernels functions;
};

/// False: `error` is one sentence.
bool compile_kernel(const Program& program, Kernel& kernel, std::string& error);
bool run_kernel(const Kernel& kernel, const HostArgs& args, std::string& error);

}  // namespace lacuna::host
