// Libraries of the CUDA toolkit, opened at run time: the ordered list of places where one may be,
// and the first file there that serves.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/dynamic_library.hpp"
#include "runtime/base/environment.hpp"

namespace lacuna {

struct CudaLibrary {
  const char* name;          ///< "nvrtc": libnvrtc.so.13
  const char* wheel;         ///< "cuda_nvrtc": the folder into which its CUDA 12 wheel unpacks
  EnvironmentVariable path;  ///< names the file or its directory in place of all others
  int major = 0;             ///< of its soname; 0: that of CUDA
};

struct LibraryPlace {
  std::string description;         ///< as named in messages
  std::vector<std::string> files;  ///< paths or sonames, newest major first
  bool loaded_only = false;        ///< ask the loader only for what the process has already
};

/// Major versions of CUDA that the library was written for, newest first.
const std::vector<int>& cuda_majors();

/// With its variable set, that place alone: what the user names is used or reported. Else absolute
/// paths only, and what the loader has or finds: never the current directory.
std::vector<LibraryPlace> library_places(const CudaLibrary& library);

/// Says whether an opened library serves, and if not, why.
using AdoptLibrary = std::function<bool(const DynamicLibrary&, std::string& why)>;

/// Opens one library after the other until `adopt` takes one. `searched` becomes the places that
/// were looked at, in order, with what was the matter with each but the one that served.
bool find_library(const CudaLibrary& library, const AdoptLibrary& adopt,
                  std::vector<std::string>& searched);

}  // namespace lacuna
