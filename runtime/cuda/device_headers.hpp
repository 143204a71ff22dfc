// The device headers a compilation can include: those embedded in the library, or those of a
// directory given with --template-path.
#pragma once

#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {

struct DeviceHeader {
  std::string name;  ///< as written in #include: "attend/mma/attend_mma.cuh"
  std::string text;
};

/// Sorted by name. An unreadable or empty directory adds kTemplatePath and gives nothing.
std::vector<DeviceHeader> device_headers(const std::string& template_path,
                                         Diagnostics& diagnostics);

}  // namespace lacuna
