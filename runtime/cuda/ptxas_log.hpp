// What `-Xptxas -v` writes into the log: resources of each kernel, and what was given up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

struct KernelResources {
  std::string name;
  int registers = 0, spill_bytes = 0, stack_bytes = 0, smem_bytes = 0;
};

/// One for each entry function named in the log; smem_bytes is the static shared memory.
std::vector<KernelResources> parse_ptxas_log(std::string_view log);

/// The lines that say that asynchronous products are serialised, or that setmaxnreg is ignored.
/// Each reason has a code of its own (C7508, C7510, C7513, C7514, C7520, ...), but all have the
/// same words. Such a kernel is correct and slow.
std::vector<std::string> find_ptxas_complaints(std::string_view log);

}  // namespace lacuna
