// All files or none, whatever happens on the way.
#include "tools/io/whole_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/tools/command.hpp"

namespace lacuna::tools {
namespace {

namespace fs = std::filesystem;
using tests::read_bytes;
using tests::ScratchDirectory;

const std::vector<NewFile> kFiles = {{"a", "new a"}, {"b", "new b"}, {"c", "new c"}};

std::string error_of(const std::optional<WritingFailure>& failed) {
  return failed ? render(failed->diagnostics, {failed->path, ""}) : "";
}

std::vector<std::string> all_paths(const ScratchDirectory& scratch) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path()))
    paths.push_back(fs::relative(entry.path(), scratch.path()).string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(WholeFiles, MakeTheirFolder) {
  const ScratchDirectory scratch;
  for (const char* folder : {"new", "new/er/", "new/er/../est"})
    EXPECT_EQ(error_of(write_together(scratch.file(folder), kFiles)), "");
  EXPECT_EQ(
      all_paths(scratch),
      (std::vector<std::string>{"new", "new/a", "new/b", "new/c", "new/er", "new/er/a", "new/er/b",
                                "new/er/c", "new/est", "new/est/a", "new/est/b", "new/est/c"}));
  EXPECT_EQ(read_bytes(scratch.file("new/b")), "new b");
}

TEST(WholeFiles, ReplaceFilesAndLeaveOthers) {
  const ScratchDirectory scratch;
  scratch.write("a", "old a");
  scratch.write("other", "other");
  EXPECT_EQ(error_of(write_together(scratch.path(), kFiles)), "");
  EXPECT_EQ(scratch.names(), (std::vector<std::string>{"a", "b", "c", "other"}));
  EXPECT_EQ(read_bytes(scratch.file("a")), "new a");
  EXPECT_EQ(read_bytes(scratch.file("other")), "other");
}

TEST(WholeFiles, GoBackWhenAFolderIsInTheWay) {
  const ScratchDirectory scratch;
  scratch.write("a", "old a");
  fs::create_directory(scratch.file("c"));
  EXPECT_EQ(error_of(write_together(scratch.path(), kFiles)),
            scratch.file("c") + ": error: cannot be written: Is a directory [E0602]\n");
  EXPECT_EQ(scratch.names(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(read_bytes(scratch.file("a")), "old a");
}

TEST(WholeFiles, LeaveNothingWhereAFileIsInTheWayOfTheFolder) {
  const ScratchDirectory scratch;
  scratch.write("file", "x");
  EXPECT_NE(error_of(write_together(scratch.file("file"), kFiles)), "");
  EXPECT_NE(error_of(write_together(scratch.file("file/deeper/down"), kFiles)), "");
  EXPECT_EQ(all_paths(scratch), std::vector<std::string>{"file"});
}

/// In a child that may write files of 1000 bytes at most.
void write_with_little_room(const std::string& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<NewFile> files = kFiles;
    files.back().bytes.resize(2000);
    ::_exit(error_of(write_together(folder, files)).find("File too large") == std::string::npos);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(WholeFiles, LeaveNothingOnAFullDisk) {
  const ScratchDirectory scratch;
  write_with_little_room(scratch.file("new/folder"));
  write_with_little_room(scratch.path());
  EXPECT_EQ(all_paths(scratch), std::vector<std::string>{});
}

TEST(WholeFiles, SweepWhatAKilledProcessLeft) {
  const ScratchDirectory scratch;
  const std::string target = scratch.file("kernels");
  for (const char* left : {"kernels.staging-1", "kernels/.staging-2"})
    fs::create_directories(scratch.file(left) + "/a");
  const std::string alive = target + "/.staging-3";
  fs::create_directory(alive);
  const int held = ::open(alive.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(error_of(write_together(target, kFiles)), "");
  ::close(held);
  EXPECT_EQ(all_paths(scratch), (std::vector<std::string>{"kernels", "kernels/.staging-3",
                                                          "kernels/a", "kernels/b", "kernels/c"}));
}

}  // namespace
}  // namespace lacuna::tools
