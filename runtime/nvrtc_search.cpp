#include "runtime/nvrtc_search.hpp"

#include <algorithm>
#include <filesystem>

#include "runtime/dynamic_library.hpp"
#include "runtime/environment.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::string soname(int major) { return "libnvrtc.so." + std::to_string(major); }

NvrtcPlace directory_place(const std::string& directory) {
  NvrtcPlace place{directory, {}};
  for (const int major : nvrtc_majors()) {
    place.files.push_back((fs::path(directory) / soname(major)).string());
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

void add_toolkit(const std::string& root, std::vector<NvrtcPlace>& places) {
  for (const char* below : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
    const fs::path directory = fs::path(root) / below;
    std::error_code failed;
    if (fs::is_directory(directory, failed)) places.push_back(directory_place(directory.string()));
  }
}

/// The folders into which the nvidia-cuda-nvrtc wheels unpack.
void add_wheels(const fs::path& prefix, std::vector<NvrtcPlace>& places) {
  for (const fs::path& python : subdirectories(prefix / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const char* wheel : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
        const fs::path directory = python / packages / wheel;
        std::error_code failed;
        if (fs::is_directory(directory, failed)) {
          places.push_back(directory_place(directory.string()));
        }
      }
    }
  }
}

NvrtcPlace named_place(const std::string& path) {
  std::error_code failed;
  NvrtcPlace place =
      fs::is_directory(path, failed) ? directory_place(path) : NvrtcPlace{"", {path}};
  place.description = "LACUNA_NVRTC_PATH=" + path;
  return place;
}

}  // namespace

const std::vector<int>& nvrtc_majors() {
  static const std::vector<int> majors = {13, 12};
  return majors;
}

std::vector<NvrtcPlace> nvrtc_places() {
  if (const std::string path = environment(EnvironmentVariable::kNvrtcPath); !path.empty()) {
    return {named_place(path)};
  }
  NvrtcPlace by_name{"", {}};
  for (const int major : nvrtc_majors()) by_name.files.push_back(soname(major));
  std::vector<NvrtcPlace> places;
  places.push_back({"libraries already loaded", by_name.files, true});
  places.push_back(directory_place(own_directory()));
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = system_variable(variable)) add_toolkit(root, places);
  }
  places.push_back({"the dynamic loader's path", by_name.files});
  add_toolkit("/usr/local/cuda", places);
  for (const fs::path& toolkit : subdirectories("/usr/local", "cuda-")) {
    add_toolkit(toolkit.string(), places);
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* prefix = system_variable(variable)) add_wheels(prefix, places);
  }
  if (const char* home = system_variable("HOME")) add_wheels(fs::path(home) / ".local", places);
  add_wheels("/usr/local", places);
  add_wheels("/usr", places);
  return places;
}

}  // namespace lacuna
