// The names of a kernel's entry, of its Config and of the value that counts its blocks.
#pragma once

#include <string>

#include "compiler/ir/program.hpp"
#include "compiler/lower/kernel.hpp"

namespace lacuna {

/// Attend's Config is `Config`, its grid `grid`: programs without other kernels have short names.
inline constexpr const char* kAttendName = "attend";

std::string entry_name(const Kernel& kernel, const Program& program);  ///< "lacuna_attend_bsfa"
std::string config_name(const Kernel& kernel);                         ///< "PrepareQConfig"
std::string grid_name(const Kernel& kernel);                           ///< "grid.prepare_q"

}  // namespace lacuna
