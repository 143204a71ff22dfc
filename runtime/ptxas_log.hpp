// Resources of each kernel, read from what `-Xptxas -v` writes into the log.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/nvrtc.hpp"

namespace lacuna {

/// One for each entry function named in the log; smem_bytes is the static shared memory.
std::vector<KernelResources> parse_ptxas_log(std::string_view log);

}  // namespace lacuna
