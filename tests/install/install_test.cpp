// The installed package as a host application sees it: find_package, pkg-config, plain C99, and a
// library that shows nothing but its C ABI.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/install/command.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

const std::string kConsumer = LACUNA_SOURCE_DIR "/tests/install/consumer";

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
  EXPECT_NE(dynamic.output.find("Library soname: [liblacuna.so.0]"), std::string::npos);
}

TEST_F(Install, HostsFindThePackageWithCMake) {
  install();
  const std::string build = directory.text() + "/build";
  expect_success("cmake -S " + kConsumer + " -B " + build + " -DCMAKE_PREFIX_PATH=" + prefix());
  expect_success("cmake --build " + build);
  const Outcome c = run(build + "/host_c");
  EXPECT_EQ(c.status, 0) << c.output;
  EXPECT_EQ(c.output, "lacuna " LACUNA_VERSION "\n");
  const Outcome cpp = run(build + "/host_cpp");
  EXPECT_EQ(cpp.status, 0) << cpp.output;
  EXPECT_EQ(cpp.output,
            "<memory>: error: kernel dense, argument q: expected a tensor, got null [E0501]\n");
}

TEST_F(Install, HostsFindThePackageWithPkgConfig) {
  if (run("pkg-config --version").status != 0) GTEST_SKIP() << "pkg-config is not installed";
  install();
  const std::string pkg_config =
      "$(PKG_CONFIG_PATH=" + prefix() + "/lib/pkgconfig pkg-config --cflags --libs lacuna)";
  const std::string program = directory.text() + "/host";
  expect_success("cc -std=c99 -pedantic -Wall -Wextra -Werror -o " + program + " " + kConsumer +
                 "/host.c " + pkg_config + " -Wl,-rpath," + prefix() + "/lib");
  expect_success(program);
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
