// Shared libraries opened at run time. They stay open until the process ends: code and handles of
// a driver, compiler or plugin must outlive every destructor.
#pragma once

#include <string>

namespace lacuna {

struct DynamicLibrary {
  void* handle = nullptr;
  std::string error;  ///< why `handle` is null

  explicit operator bool() const { return handle != nullptr; }
  /// Null if the library does not have it.
  void* symbol(const char* name) const;
};

/// Opens `path` (or a soname for the loader's search), symbols private to the handle.
DynamicLibrary open_library(const std::string& path);

/// Only if the process has it loaded already.
DynamicLibrary find_loaded_library(const std::string& soname);

/// The file that a loaded symbol lives in, an absolute path; "" if unknown.
std::string library_path_of(const void* symbol);

/// The ELF build-id (hex) of the loaded file that holds `symbol`; "" if it has none.
std::string build_id_of(const void* symbol);

/// The directory of the binary that holds this code: liblacuna.so, or the executable it is
/// linked into. An absolute path; "" if unknown.
std::string own_directory();

}  // namespace lacuna
