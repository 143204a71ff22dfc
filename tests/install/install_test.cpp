// The installed package as a host application sees it: find_package, pkg-config, plain C99, and a
// library that shows nothing but its C ABI.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "lacuna/lacuna.h"
#include "tests/install/command.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

const std::string kConsumer = LACUNA_SOURCE_DIR "/tests/install/consumer";
const std::string kExamples = LACUNA_SOURCE_DIR "/runtime/examples/hosts";

/// GPUs whose kernels the examples carry: none where there is no NVRTC to compile them.
std::string archs() {
  const Outcome doctor = run(LACUNA_BINARY_DIR "/bin/lacuna doctor --json");
  return doctor.output.find("\"found\": true") != std::string::npos ? "'sm_80;sm_90a'" : "";
}

/// The highest version of the C library that a file asks for: "2.34".
std::string highest_glibc(const std::string& path) {
  const Outcome symbols = run("objdump -T " + path);
  EXPECT_EQ(symbols.status, 0) << symbols.output;
  const std::regex version("GLIBC_2\\.([0-9]+)");
  int highest = 0;
  for (std::sregex_iterator found(symbols.output.begin(), symbols.output.end(), version), end;
       found != end; ++found) {
    highest = std::max(highest, std::stoi((*found)[1]));
  }
  return "2." + std::to_string(highest);
}

/// The C++ of a README, as it stands there.
std::string snippet(const std::string& readme, const std::string& heading) {
  std::ifstream file(LACUNA_SOURCE_DIR "/" + readme);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find("```cpp\n", text.find(heading)) + 7;
  return text.substr(begin, text.find("```", begin) - begin);
}

class Install : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLibrary)) GTEST_SKIP() << kLibrary << " is not built";
  }
  std::string prefix() const { return directory.text() + "/prefix"; }
  void install() {
    expect_success("cmake --install " LACUNA_BINARY_DIR " --component library --prefix " +
                   prefix());
  }
  TemporaryDirectory directory;
};

TEST_F(Install, TheLibraryShowsOnlyItsCAbi) {
  const Outcome symbols = run("nm -D --defined-only " + kLibrary);
  ASSERT_EQ(symbols.status, 0) << symbols.output;
  std::istringstream lines(symbols.output);
  int count = 0;
  for (std::string address, type, name; lines >> address >> type >> name; ++count) {
    EXPECT_EQ(name.rfind("lacuna_", 0), 0U) << name;
  }
  EXPECT_GE(count, 16);
}

TEST_F(Install, TheLibraryNeedsNeitherCudaNorLlvm) {
  const Outcome dynamic = run("readelf -d " + kLibrary);
  ASSERT_EQ(dynamic.status, 0) << dynamic.output;
  for (const char* name : {"libcuda", "libnvrtc", "libLLVM"}) {
    EXPECT_EQ(dynamic.output.find(name), std::string::npos) << name;
  }
}

TEST_F(Install, HostsFindThePackageWithCMake) {
  install();
  const std::string build = directory.text() + "/build";
  expect_success("cmake -G Ninja -S " + kConsumer + " -B " + build + " -DEXAMPLES=" + kExamples +
                 " -DLACUNA_COMMAND=" LACUNA_BINARY_DIR "/bin/lacuna -DCMAKE_PREFIX_PATH=" +
                 prefix() + " -DARCHS=" + archs());
  expect_success("cmake --build " + build);
  const Outcome c = run(build + "/hosts/host_c");
  EXPECT_EQ(c.status, 0) << c.output;
  EXPECT_EQ(c.output, "lacuna " LACUNA_VERSION "\n");
  const Outcome cpp = run("(" + build + "/hosts/host_cpp 2>/dev/null)");
  EXPECT_EQ(cpp.status, 0) << cpp.output;
  EXPECT_TRUE(std::regex_match(
      cpp.output,
      std::regex("[1-9][0-9]* tiles visited, [1-9][0-9]* of them gated, mean of o .*\n")))
      << cpp.output;
  expect_success(build + "/throwing_callbacks");
  const Outcome plain = run(build + "/without_exceptions");
  EXPECT_EQ(plain.status, 0) << plain.output;
  EXPECT_EQ(
      plain.output,
      "<memory>: error: kernel dense, argument q: rank expected 4 [batch, heads, n_q, d], got "
      "-1 [E0501]\n");
}

TEST_F(Install, HostsFindThePackageWithPkgConfig) {
  if (run("pkg-config --version").status != 0) GTEST_SKIP() << "pkg-config is not installed";
  install();
  const std::string pkg_config =
      "$(PKG_CONFIG_PATH=" + prefix() + "/lib/pkgconfig pkg-config --cflags --libs lacuna)";
  const std::string program = directory.text() + "/host";
  expect_success("cc -std=c99 -pedantic -Wall -Wextra -Werror -o " + program + " " + kExamples +
                 "/host.c " + pkg_config + " -Wl,-rpath," + prefix() + "/lib");
  expect_success(program);
}

TEST_F(Install, TheSnippetOfTheReadmeCompilesWithoutWarnings) {
  const std::string source = directory.text() + "/snippet.cpp";
  const std::string code = snippet("README.md", "## From C++");
  ASSERT_NE(code.find("lacuna::Engine::create"), std::string::npos) << code;
  const std::size_t end_of_includes = code.find("\n\n") + 1;
  std::ofstream(source) << code.substr(0, end_of_includes)
                        << "void use(const lacuna::Tensor& q, const lacuna::Tensor& k, const "
                           "lacuna::Tensor& v,\n         const lacuna::Tensor& o, const "
                           "lacuna::Tensor& threshold, int n, void* workspace,\n         void* "
                           "stream) {\n"
                        << code.substr(end_of_includes) << "}\n";
  expect_success(
      "c++ -std=c++20 -Wall -Wextra -Wconversion -pedantic -Werror -fsyntax-only "
      "-I " LACUNA_SOURCE_DIR "/runtime/include " +
      source);
}

TEST_F(Install, BinariesLoadOnOlderSystems) {
  for (const char* name : {"liblacuna.so", "liblacuna_host.so", "lacuna"}) {
    const std::string path = std::string(LACUNA_BINARY_DIR "/bin/") + name;
    if (!std::filesystem::exists(path)) continue;
    const Outcome needed = run("readelf -d " + path);
    EXPECT_EQ(needed.output.find("libstdc++"), std::string::npos) << name;
    const std::string highest = highest_glibc(path);
    EXPECT_NE(highest, "2.0") << name;
    EXPECT_LE(std::stoi(highest.substr(2)), 34) << name << " needs glibc " << highest;
  }
}

TEST_F(Install, VersionSonameAndAbiBelongTogether) {
  // tools/dev/CHANGELOG.md: the SONAME is the ABI version less one.
  const Outcome dynamic = run("readelf -d " + kLibrary);
  const std::string soname = "liblacuna.so." + std::to_string(LACUNA_ABI_VERSION - 1);
  EXPECT_NE(dynamic.output.find("Library soname: [" + soname + "]"), std::string::npos)
      << dynamic.output;
  EXPECT_TRUE(std::filesystem::exists(std::string(LACUNA_BINARY_DIR) +
                                      "/bin/liblacuna.so." LACUNA_VERSION));
  std::ifstream file(LACUNA_SOURCE_DIR "/tools/dev/CHANGELOG.md");
  const std::string changes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(changes.find("\n## " LACUNA_VERSION), std::string::npos)
      << "a version without a section in CHANGELOG.md";
}

TEST_F(Install, NoticesOfWhatIsLinkedInComeAlong) {
  install();
  std::ifstream file(prefix() + "/share/doc/lacuna/NOTICES.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const char* name :
       {"LLVM", "zstd", "xxHash", "libmd", "DLPack", "JSON for Modern C++", "CLI11"})
    EXPECT_NE(text.find(std::string("\n## ") + name), std::string::npos) << name;
}

TEST_F(Install, HeadersForTheDeviceAndSpecsComeAlong) {
  install();
  EXPECT_TRUE(std::filesystem::exists(prefix() + "/include/lacuna/dlpack.h"));
  EXPECT_TRUE(
      std::filesystem::exists(prefix() + "/share/lacuna/templates/attend/mma/attend_mma.cuh"));
  EXPECT_TRUE(std::filesystem::exists(prefix() + "/share/lacuna/specs/bsfa.json"));
}

}  // namespace
}  // namespace lacuna
