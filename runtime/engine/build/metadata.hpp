// The metadata of a store entry: what `info` and `build` say of a kernel, also on a hit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/target/plan.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {

struct KernelMetadata {
  std::string spec, target;
  int head_dim = 0;
  std::string dtype, batch;   ///< names
  std::string nvrtc, lacuna;  ///< versions of what compiled it
  double compile_ms = 0;
  std::vector<KernelResources> kernels;
  int relief = 0;                         ///< BuildOptions::relief of the plan that was compiled
  std::string relieved_source_sha256{};   ///< of that plan, if `relief` is not 0
  std::vector<std::string> complaints{};  ///< of the assembler, about the plans before it
  int head_dim_v = 0;                     ///< of v and o; 0: head_dim
  std::string kv{};                       ///< name of the format of k and v; "": the type of q
};

/// Of a kernel that is wanted: spec, target, and what distinguishes it from others of the spec.
KernelMetadata metadata_for(const Plan& plan);

std::string write_metadata(const KernelMetadata& metadata);

/// Nothing if the text is not what write_metadata writes.
std::optional<KernelMetadata> read_metadata(const std::string& text);

}  // namespace lacuna
