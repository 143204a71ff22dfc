// Where NVRTC may be: the ordered list of places that load_nvrtc tries.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

struct NvrtcPlace {
  std::string description;         ///< as named in messages
  std::vector<std::string> files;  ///< paths or sonames, newest major first
  bool loaded_only = false;        ///< ask the loader only for what the process has already
};

/// Major versions the library was written for, newest first.
const std::vector<int>& nvrtc_majors();

/// With LACUNA_NVRTC_PATH set, that place alone: what the user names is used or reported.
std::vector<NvrtcPlace> nvrtc_places();

}  // namespace lacuna
