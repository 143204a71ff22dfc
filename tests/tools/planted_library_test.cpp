// The command started by PATH from a directory that holds files of the names it looks for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

namespace fs = std::filesystem;

/// What `lacuna doctor` says about the CPU when it is started as "lacuna" in this directory.
std::string doctor_in(const std::string& directory) {
  const std::string out = directory + "/out";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    ::setenv("LACUNA_CACHE_DIR", (directory + "/cache").c_str(), 1);
    ::unsetenv("LACUNA_HOST_PLUGIN");
    if (::chdir(directory.c_str()) != 0) ::_exit(126);
    const char* const arguments[] = {"lacuna", "doctor", nullptr};
    ::execv(LACUNA_BINARY_DIR "/bin/lacuna", const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const std::string text = read_bytes(out);
  const std::size_t begin = text.find("\nCPU ");
  EXPECT_NE(begin, std::string::npos) << text;
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin + 1) - begin);
}

TEST(PlantedLibrary, ThePluginComesFromWhereTheProgramIs) {
  const ScratchDirectory elsewhere, planted;
  planted.write("lacuna", "whatever");
  for (const char* folder : {"", "lib/"}) {
    if (*folder != '\0') fs::create_directory(planted.file(folder));
    fs::copy_file(LACUNA_FAKE_HOST, planted.file(std::string(folder) + "liblacuna_host.so"));
  }
  EXPECT_EQ(doctor_in(planted.path()), doctor_in(elsewhere.path()));
}

}  // namespace
}  // namespace lacuna::tests
