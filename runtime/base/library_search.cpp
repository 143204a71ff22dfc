#include "runtime/base/library_search.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> sonames(const CudaLibrary& library) {
  const std::string stem = "lib" + std::string(library.name) + ".so.";
  if (library.major != 0) return {stem + std::to_string(library.major)};
  std::vector<std::string> names;
  for (const int major : cuda_majors()) names.push_back(stem + std::to_string(major));
  return names;
}

/// A directory that a variable of the system names. One that is empty or relative would be looked
/// for in whatever directory the process is in.
std::optional<fs::path> directory_in(const char* variable) {
  const char* value = system_variable(variable);
  if (value == nullptr || *value != '/') return std::nullopt;
  return value;
}

LibraryPlace directory_place(const CudaLibrary& library, const fs::path& directory) {
  LibraryPlace place{directory.string(), {}};
  for (const std::string& name : sonames(library)) {
    place.files.push_back((directory / name).string());
  }
  return place;
}

/// Subdirectories of `parent` whose name begins with `prefix`, newest name first.
std::vector<fs::path> subdirectories(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (auto it = fs::directory_iterator(parent, failed); !failed && it != fs::directory_iterator();
       it.increment(failed)) {
    if (it->path().filename().string().rfind(prefix, 0) == 0) found.push_back(it->path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void add_toolkit(const CudaLibrary& library, const std::string& root,
                 std::vector<LibraryPlace>& places) {
  for (const char* below : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
    const fs::path directory = fs::path(root) / below;
    std::error_code failed;
    if (fs::is_directory(directory, failed)) places.push_back(directory_place(library, directory));
  }
}

/// The folders into which NVIDIA's Python wheels unpack.
void add_wheels(const CudaLibrary& library, const fs::path& prefix,
                std::vector<LibraryPlace>& places) {
  for (const fs::path& python : subdirectories(prefix / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const char* wheel : {"cu13", library.wheel}) {
        const fs::path directory = python / packages / "nvidia" / wheel / "lib";
        std::error_code failed;
        if (fs::is_directory(directory, failed)) {
          places.push_back(directory_place(library, directory));
        }
      }
    }
  }
}

LibraryPlace named_place(const CudaLibrary& library, const std::string& path) {
  std::error_code failed;
  LibraryPlace place =
      fs::is_directory(path, failed) ? directory_place(library, path) : LibraryPlace{"", {path}};
  place.description = std::string(name_of(library.path)) + "=" + path;
  return place;
}

/// A library of this place that `adopt` takes; if there is none, `outcome` says why.
bool take_from(const LibraryPlace& place, const AdoptLibrary& adopt, std::string& outcome) {
  outcome = "nothing there";
  for (const std::string& file : place.files) {
    std::error_code failed;
    const bool is_path = file.find('/') != std::string::npos;
    if (is_path && !fs::exists(file, failed)) continue;
    const DynamicLibrary library =
        place.loaded_only ? find_loaded_library(file) : open_library(file);
    if (library && adopt(library, outcome)) return true;
    if (!library && is_path) outcome = library.error;
  }
  return false;
}

}  // namespace

const std::vector<int>& cuda_majors() {
  static const std::vector<int> majors = {13, 12};
  return majors;
}

std::vector<LibraryPlace> library_places(const CudaLibrary& library) {
  if (const std::string path = environment(library.path); !path.empty()) {
    return {named_place(library, path)};
  }
  const std::vector<std::string> by_name = sonames(library);
  std::vector<LibraryPlace> places;
  places.push_back({"libraries already loaded", by_name, true});
  if (const std::string own = own_directory(); !own.empty()) {
    places.push_back(directory_place(library, own));
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto root = directory_in(variable)) add_toolkit(library, root->string(), places);
  }
  places.push_back({"the dynamic loader's path", by_name});
  add_toolkit(library, "/usr/local/cuda", places);
  for (const fs::path& toolkit : subdirectories("/usr/local", "cuda-")) {
    add_toolkit(library, toolkit.string(), places);
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = directory_in(variable)) add_wheels(library, *prefix, places);
  }
  if (const auto home = directory_in("HOME")) add_wheels(library, *home / ".local", places);
  add_wheels(library, "/usr/local", places);
  add_wheels(library, "/usr", places);
  return places;
}

bool find_library(const CudaLibrary& library, const AdoptLibrary& adopt,
                  std::vector<std::string>& searched) {
  for (const LibraryPlace& place : library_places(library)) {
    std::string outcome;
    if (take_from(place, adopt, outcome)) {
      searched.push_back(place.description);
      return true;
    }
    searched.push_back(place.description + ": " + outcome);
  }
  return false;
}

}  // namespace lacuna
