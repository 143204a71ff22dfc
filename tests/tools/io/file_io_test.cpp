// Writing is all or nothing; errors name their cause.
#include "tools/io/file_io.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/tools/command.hpp"

namespace lacuna::tools {
namespace {

using tests::ScratchDirectory;

std::string first_error(const Diagnostics& diagnostics) {
  if (diagnostics.items.empty()) return "";
  const Diagnostic& d = diagnostics.items.front();
  return code_name(d.code) + " " + d.message;
}

TEST(FileIo, ReplacesAFileAndLeavesNothingElse) {
  const ScratchDirectory scratch;
  Diagnostics diagnostics;
  EXPECT_TRUE(write_file(scratch.file("a"), "old", diagnostics));
  EXPECT_TRUE(write_file(scratch.file("a"), std::string(100000, 'x'), diagnostics));
  EXPECT_EQ(read_file(scratch.file("a"), diagnostics), std::string(100000, 'x'));
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"a"});
  EXPECT_TRUE(diagnostics.items.empty());
}

TEST(FileIo, SaysWhyAFileCannotBeReadOrWritten) {
  const ScratchDirectory scratch;
  Diagnostics diagnostics;
  EXPECT_FALSE(read_file(scratch.file("none"), diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0601 cannot be read: No such file or directory");
  diagnostics = {};
  EXPECT_FALSE(read_file(scratch.path(), diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0601 cannot be read: Is a directory");
  diagnostics = {};
  EXPECT_FALSE(read_file("/dev/zero", diagnostics, 100));
  EXPECT_EQ(first_error(diagnostics), "E0608 cannot be read: it is larger than 100 bytes");
  diagnostics = {};
  EXPECT_FALSE(write_file(scratch.file("no/such/folder"), "x", diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0602 cannot be written: No such file or directory");
  diagnostics = {};
  EXPECT_FALSE(write_file(scratch.path(), "x", diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0602 cannot be written: Is a directory");
}

TEST(FileIo, KnowsBeforeWhetherAFileCanBeWritten) {
  const ScratchDirectory scratch;
  Diagnostics diagnostics;
  EXPECT_TRUE(check_writable(scratch.file("new"), diagnostics));
  EXPECT_TRUE(check_writable(scratch.write("old", "old"), diagnostics));
  EXPECT_TRUE(check_writable("/dev/null", diagnostics));
  EXPECT_TRUE(diagnostics.items.empty());
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"old"});
  EXPECT_EQ(tests::read_bytes(scratch.file("old")), "old");
  EXPECT_FALSE(check_writable(scratch.file("no/such/folder"), diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0602 cannot be written: No such file or directory");
  diagnostics = {};
  EXPECT_FALSE(check_writable(scratch.path(), diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0602 cannot be written: Is a directory");
}

TEST(FileIo, APipeNeedsSomebodyAtItsOtherEnd) {
  const ScratchDirectory scratch;
  const std::string pipe = scratch.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Diagnostics diagnostics;
  std::jthread writer([&pipe] {
    std::ofstream file(pipe);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    file << "late";
  });
  EXPECT_EQ(read_file(pipe, diagnostics), "late");
  std::string got;
  std::jthread reader([&pipe, &got] { got = tests::read_bytes(pipe); });
  EXPECT_TRUE(write_file(pipe, "whole", diagnostics));
  reader.join();
  EXPECT_EQ(got, "whole");
  EXPECT_TRUE(diagnostics.items.empty());
  EXPECT_FALSE(read_file(pipe, diagnostics));
  EXPECT_EQ(first_error(diagnostics),
            "E0601 cannot be read: nobody is at the other end of this pipe");
}

TEST(FileIo, WhatIsLargerThanMemoryIsNotRead) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("sparse", "");
  Diagnostics diagnostics;
  if (::truncate(path.c_str(), off_t{1} << 42) != 0) GTEST_SKIP() << "no sparse files here";
  EXPECT_FALSE(read_file(path, diagnostics));
  EXPECT_TRUE(first_error(diagnostics).starts_with("E0608 cannot be read: it is larger than "));
  diagnostics = {};
  EXPECT_FALSE(read_file("/dev/zero", diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0608 cannot be read: it is larger than 1048576 bytes");
}

TEST(FileIo, AFullDiskLeavesTheOldFile) {
  const ScratchDirectory scratch;
  scratch.write("a", "old");
  // A process that may write no file beyond 1000 bytes stands for a full disk.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Diagnostics diagnostics;
    const bool written = write_file(scratch.file("a"), std::string(100000, 'x'), diagnostics);
    ::_exit(!written && first_error(diagnostics) == "E0602 cannot be written: File too large" ? 0
                                                                                              : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(tests::read_bytes(scratch.file("a")), "old");
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"a"});
}

TEST(FileIo, WritesADeviceInPlace) {
  Diagnostics diagnostics;
  EXPECT_TRUE(write_file("/dev/null", "x", diagnostics));
  EXPECT_FALSE(write_file("/dev/full", "x", diagnostics));
  EXPECT_EQ(first_error(diagnostics), "E0602 cannot be written: No space left on device");
}

}  // namespace
}  // namespace lacuna::tools
