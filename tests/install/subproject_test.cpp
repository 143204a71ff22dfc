// The sources inside another project, and that project's folders: Debian's for several
// architectures, and headers apart.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/install/command.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

class Subproject : public testing::Test {
 protected:
  void configure(const std::string& options) {
    expect_success("cmake -G Ninja -S " LACUNA_SOURCE_DIR "/tests/install/subproject -B " + build +
                   " -DLACUNA_SOURCES=" LACUNA_SOURCE_DIR " -DLACUNA_LLVM=OFF " + options);
  }
  const TemporaryDirectory directory;
  const std::string build = directory.text() + "/build", prefix = directory.text() + "/prefix";
};

TEST_F(Subproject, GivesTheLibraryAloneAndTheHostsNames) {
  configure("");
  expect_success("cmake --build " + build +
                 " --target CMakeFiles/host_c.dir" LACUNA_SOURCE_DIR
                 "/runtime/examples/hosts/host.c.o");
  expect_success("cmake --install " + build + " --prefix " + prefix);
  EXPECT_FALSE(fs::exists(prefix + "/include")) << "the host did not ask for it";
}

TEST_F(Subproject, ComesByFetchContentToo) {
  configure("-DFETCH=ON");
  expect_success("ninja -C " + build + " -n host_c");
}

TEST_F(Subproject, FoldersOfTheHostAreKept) {
  if (!fs::exists(kLibrary)) GTEST_SKIP() << kLibrary << " is not built";
  configure(
      "-DLACUNA_INSTALL=ON -DCMAKE_INSTALL_LIBDIR=lib64/x86_64-linux-gnu"
      " -DCMAKE_INSTALL_INCLUDEDIR=include/apart -DCMAKE_INSTALL_DATADIR=data");
  // The library is not built a second time.
  const std::string bin = build + "/lacuna/bin", libdir = prefix + "/lib64/x86_64-linux-gnu";
  expect_success("mkdir -p " + bin + " && cp -P " + kLibrary + "* " + bin);
  expect_success("cmake --install " + build + " --component library --prefix " + prefix);
  EXPECT_TRUE(fs::exists(libdir + "/liblacuna.so.0"));

  const std::string host = directory.text() + "/host";
  expect_success("cmake -S " LACUNA_SOURCE_DIR "/tests/install/consumer -B " + host +
                 " -DEXAMPLES=" LACUNA_SOURCE_DIR "/runtime/examples/hosts -DCMAKE_PREFIX_PATH=" +
                 prefix + " -Dlacuna_DIR=" + libdir + "/cmake/lacuna -DPACKAGE_VERSION=7");
  expect_success("cmake --build " + host + " --target host_c && " + host + "/hosts/host_c");
  if (run("pkg-config --version").status != 0) GTEST_SKIP() << "pkg-config is not installed";
  const std::string pkg_config = "PKG_CONFIG_PATH=" + libdir + "/pkgconfig pkg-config ";
  expect_success("test -f $(" + pkg_config + "--variable=specdir lacuna)/bsfa.json");
  expect_success("cc -o " + host + "/plain " LACUNA_SOURCE_DIR "/runtime/examples/hosts/host.c $(" +
                 pkg_config + "--cflags --libs lacuna) -Wl,-rpath," + libdir + " && " + host +
                 "/plain");
}

}  // namespace
}  // namespace lacuna
