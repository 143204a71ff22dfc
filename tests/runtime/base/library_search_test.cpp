// Libraries are looked for where the program is and where its user says, never where it happens to
// be.
#include "runtime/base/library_search.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/runtime/scoped_variable.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr CudaLibrary kNvrtc{"nvrtc", "cuda_nvrtc", EnvironmentVariable::kNvrtcPath};

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
    for (const LibraryPlace& place : library_places(kNvrtc)) {
      for (const std::string& file : place.files)
        EXPECT_TRUE(file.front() == '/' || file.find('/') == std::string::npos) << file;
    }
  }
}

TEST(LibrarySearch, ToolkitsComeBeforeTheLoaderAndWheelsBehindIt) {
  const TemporaryDirectory directory;
  // In the order in which they are to be looked at.
  const std::vector<std::string> toolkits = {"home/lib64", "home/lib",
                                             "home/targets/x86_64-linux/lib", "path/lib"};
  const std::vector<std::string> wheels = {
      "venv/lib/python3.12/site-packages/nvidia/cu13/lib",
      "venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib",
      "venv/lib/python3.12/dist-packages/nvidia/cu13/lib",
      "venv/lib/python3.11/site-packages/nvidia/cu13/lib",
      "conda/lib/python3.11/site-packages/nvidia/cu13/lib",
      "user/.local/lib/python3.11/site-packages/nvidia/cu13/lib"};
  for (const auto* folders : {&toolkits, &wheels})
    for (const std::string& folder : *folders) fs::create_directories(directory.path() / folder);
  fs::create_directories(directory.path() / "venv/lib/other/site-packages/nvidia/cu13/lib");
  const auto at = [&](const char* name) { return (directory.path() / name).string(); };
  const ScopedVariable named("LACUNA_NVRTC_PATH", nullptr), home("CUDA_HOME", at("home").c_str()),
      path("CUDA_PATH", at("path").c_str()), user("HOME", at("user").c_str()),
      python("VIRTUAL_ENV", at("venv").c_str()), conda("CONDA_PREFIX", at("conda").c_str());

  std::vector<std::string> expected;
  for (const std::string& folder : toolkits) expected.push_back(at(folder.c_str()));
  expected.emplace_back("the dynamic loader's path");
  for (const std::string& folder : wheels) expected.push_back(at(folder.c_str()));
  const std::vector<LibraryPlace> places = library_places(kNvrtc);
  std::vector<std::string> found;
  for (const LibraryPlace& place : places)
    if (std::ranges::count(expected, place.description) != 0) found.push_back(place.description);
  EXPECT_EQ(found, expected);

  EXPECT_TRUE(places.at(0).loaded_only);
  EXPECT_EQ(places.at(0).files, (std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12"}));
  EXPECT_EQ(places.at(1).description, own_directory());
  EXPECT_EQ(places.at(2).files, (std::vector<std::string>{at("home/lib64/libnvrtc.so.13"),
                                                          at("home/lib64/libnvrtc.so.12")}));
  for (std::size_t n = 1; n < places.size(); ++n) EXPECT_FALSE(places[n].loaded_only);
}

TEST(LibrarySearch, WhatTheUserNamesIsTheOnlyPlace) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "libnvrtc.so.13").string();
  const auto searched = [](const std::string& named, const AdoptLibrary& adopt, bool is_found) {
    const ScopedVariable variable("LACUNA_NVRTC_PATH", named.c_str());
    std::vector<std::string> places;
    EXPECT_EQ(find_library(kNvrtc, adopt, places), is_found);
    EXPECT_EQ(places.size(), 1u);
    return places.empty() ? "" : places.front();
  };
  const auto refuse = [](const DynamicLibrary&, std::string& why) {
    why = "it is too old";
    return false;
  };
  const auto take = [](const DynamicLibrary&, std::string&) { return true; };
  const std::string variable = "LACUNA_NVRTC_PATH=";
  EXPECT_EQ(searched(directory.text(), take, false),
            variable + directory.text() + ": nothing there");
  fs::create_symlink(LACUNA_FAKE_HOST, file);
  for (const std::string& named : {directory.text(), file}) {
    EXPECT_EQ(searched(named, refuse, false), variable + named + ": it is too old");
    EXPECT_EQ(searched(named, take, true), variable + named);
  }
  const std::string broken = (directory.path() / "broken.so").string();
  std::ofstream(broken) << "no library";
  const std::string said = searched(broken, take, false);
  EXPECT_TRUE(said.starts_with(variable + broken + ": ")) << said;
  EXPECT_NE(said, variable + broken + ": nothing there") << "the loader knows more";
}

TEST(LibrarySearch, ABinaryHasTheBuildIdThatItsNotesSay) {
  const std::string command = "readelf -n /proc/" + std::to_string(::getpid()) + "/exe 2>&1";
  std::string said;
  FILE* const pipe = ::popen(command.c_str(), "r");
  for (char line[256]; std::fgets(line, sizeof line, pipe) != nullptr;) said += line;
  ::pclose(pipe);
  const std::string name = "Build ID: ";
  const std::size_t at = said.find(name);
  if (at == std::string::npos) GTEST_SKIP() << "no readelf, or no note: " << said;
  const std::size_t begin = at + name.size();
  EXPECT_EQ(build_id_of(reinterpret_cast<const void*>(&library_places)),
            said.substr(begin, said.find_first_not_of("0123456789abcdef", begin) - begin));
  EXPECT_EQ(build_id_of(nullptr), "");
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
