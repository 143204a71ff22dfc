// The metadata of a store entry: what `info` and `build` say of a kernel, also on a hit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/nvrtc.hpp"

namespace lacuna {

struct KernelMetadata {
  std::string spec, target, nvrtc, lacuna;  ///< names and versions
  double compile_ms = 0;
  std::vector<KernelResources> kernels;
};

std::string write_metadata(const KernelMetadata& metadata);

/// Nothing if the text is not what write_metadata writes.
std::optional<KernelMetadata> read_metadata(const std::string& text);

}  // namespace lacuna
