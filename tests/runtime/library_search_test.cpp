// Libraries are looked for where the program is and where its user says, never where it happens to
// be.
#include "runtime/base/library_search.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/scoped_variable.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Another current directory, until destruction.
class ScopedDirectory {
 public:
  explicit ScopedDirectory(const fs::path& path) { fs::current_path(path); }
  ~ScopedDirectory() { fs::current_path(before_); }
  ScopedDirectory(const ScopedDirectory&) = delete;
  ScopedDirectory& operator=(const ScopedDirectory&) = delete;

 private:
  fs::path before_ = fs::current_path();
};

TEST(LibrarySearch, NoPlaceIsRelativeToTheCurrentDirectory) {
  const TemporaryDirectory directory;
  const ScopedDirectory inside(directory.text());
  for (const char* folder :
       {"lib64", "toolkit/lib64", "lib/python3.11/site-packages/nvidia/cu13/lib",
        ".local/lib/python3.11/site-packages/nvidia/cu13/lib"})
    fs::create_directories(folder);
  for (const char* value : {"", ".", "toolkit"}) {
    const ScopedVariable cuda("CUDA_HOME", value), path("CUDA_PATH", value), home("HOME", value),
        python("VIRTUAL_ENV", value), conda("CONDA_PREFIX", value);
    for (const LibraryPlace& place :
         library_places({"nvrtc", "cuda_nvrtc", EnvironmentVariable::kNvrtcPath})) {
      for (const std::string& file : place.files)
        EXPECT_TRUE(file.front() == '/' || file.find('/') == std::string::npos) << file;
    }
  }
}

TEST(LibrarySearch, ABinaryKnowsItsFileWhateverItWasStartedAs) {
  const TemporaryDirectory directory;
  const fs::path self = fs::canonical("/proc/self/exe");
  const ScopedDirectory inside(directory.text());
  EXPECT_EQ(library_path_of(reinterpret_cast<const void*>(&library_places)), self);
  EXPECT_EQ(own_directory(), self.parent_path());
  EXPECT_EQ(library_path_of(nullptr), "");
}

}  // namespace
}  // namespace lacuna
