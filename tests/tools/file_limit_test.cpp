// The command under a limit on the size of files: an error, no signal, and nothing half-written.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

CommandResult run_limited(const std::vector<std::string>& arguments,
                          const ScratchDirectory& scratch) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(scratch.file("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    ::setenv("LACUNA_CACHE_DIR", scratch.file("cache").c_str(), 1);
    const struct rlimit limit { 1000, 1000 };
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
    std::vector<char*> argv = {const_cast<char*>("lacuna")};
    for (const std::string& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
    argv.push_back(nullptr);
    ::execv(LACUNA_BINARY_DIR "/bin/lacuna", argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.err = read_bytes(scratch.file("err"));
  return result;
}

TEST(FileLimit, AnOutputThatDoesNotFitIsAnError) {
  const ScratchDirectory scratch;
  const CommandResult result = run_limited(
      {"emit", "--form", "cuda", source_file("specs/dense.json"), "-o", scratch.file("dense.cu")},
      scratch);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("cannot be written: File too large"), std::string::npos) << result.err;
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"err"});
}

TEST(FileLimit, RecordsThatDoNotFitAreAnError) {
  const ScratchDirectory scratch;
  const CommandResult result =
      run_limited({"tune", "--import", source_file("cache/seed/nvidia-h200-132.jsonl")}, scratch);
  EXPECT_EQ(result.status, 3);
  EXPECT_TRUE(result.err.ends_with(": cannot be written: File too large\n")) << result.err;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.file("cache")))
    EXPECT_TRUE(entry.is_directory()) << entry.path();
}

}  // namespace
}  // namespace lacuna::tests
