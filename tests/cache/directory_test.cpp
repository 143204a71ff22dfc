// Directories that are missing, full, read-only or not to be trusted: one warning, then memory.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "cache/files/directories.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

constexpr uid_t kNobody = 65534;

Environment environment_of(std::map<std::string, std::string> variables) {
  auto owned = std::make_shared<std::map<std::string, std::string>>(std::move(variables));
  return [owned](const char* name) -> const char* {
    const auto found = owned->find(name);
    return found == owned->end() ? nullptr : found->second.c_str();
  };
}

/// Whatever the directory: kernels are built, found again, and right.
bool works_from_memory(Store& store) {
  const Key key = key_number(1);
  const auto first = store.obtain(key, [&] { return kernel_for(key); });
  if (!first.entry || first.hit || store.publish(key, *first.entry)) return false;
  const auto second = store.obtain(key, []() -> std::optional<Entry> { return std::nullopt; });
  return second.hit && is_kernel_of(*second.entry, key);
}

TEST(ChooseDirectory, FollowsTheOrder) {
  EXPECT_EQ(choose_directory(environment_of(
                {{"LACUNA_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}})),
            "/a");
  EXPECT_EQ(choose_directory(environment_of({{"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}})),
            "/b/lacuna");
  EXPECT_EQ(choose_directory(environment_of({{"HOME", "/c"}})), "/c/.cache/lacuna");
  EXPECT_EQ(choose_directory(environment_of({{"XDG_CACHE_HOME", "not/absolute"}, {"HOME", "/c"}})),
            "/c/.cache/lacuna");
  EXPECT_EQ(choose_directory(environment_of({{"LACUNA_CACHE_DIR", ""}, {"HOME", ""}})), "");
}

TEST(ChooseLockDirectory, PrefersTheRuntimeDirectory) {
  const Scratch scratch;
  EXPECT_EQ(choose_lock_directory(environment_of({{"XDG_RUNTIME_DIR", scratch.path()}})),
            scratch.path("lacuna"));
  const std::string shared =
      exists("/dev/shm") ? "/dev/shm/lacuna-" + std::to_string(::geteuid()) : std::string();
  EXPECT_EQ(choose_lock_directory(environment_of({{"XDG_RUNTIME_DIR", "/no/such"}})), shared);
  EXPECT_EQ(choose_lock_directory(environment_of({})), shared);
}

TEST(Directory, IsCreatedPrivate) {
  const Scratch scratch;
  StoreOptions options = options_in(scratch);
  options.directory = scratch.path("deep/er/cache");
  const mode_t before = ::umask(0);
  EXPECT_TRUE(Store(options).publish(key_number(1), kernel_for(key_number(1))));
  ::umask(before);
  for (const std::string& name : files_below(scratch.path("deep"), "")) {
    struct stat status {};
    ASSERT_EQ(::stat(name.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, S_ISDIR(status.st_mode) ? 0700U : 0600U) << name;
  }
}

TEST(Directory, NoHomeMeansMemoryOnly) {
  const pid_t child = start_child([] {
    for (const char* name : {"LACUNA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
    std::vector<std::string> warnings;
    StoreOptions options;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    Store store(options);
    require(!store.on_disk(), "memory only");
    require(works_from_memory(store), "kernels from memory");
    require(warnings.size() == 1, "one warning");
    require(warnings[0] ==
                "no cache directory: none of LACUNA_CACHE_DIR, XDG_CACHE_HOME and HOME is set; "
                "compiled kernels are kept in memory only",
            "the exact warning");
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST(Directory, HomeThatCannotBeWritten) {
  const pid_t child = start_child([] {
    for (const char* name : {"LACUNA_CACHE_DIR", "XDG_CACHE_HOME"}) ::unsetenv(name);
    ::setenv("HOME", "/proc", 1);
    std::vector<std::string> warnings;
    StoreOptions options;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    Store store(options);
    require(works_from_memory(store), "kernels from memory");
    require(!store.on_disk(), "memory only");
    require(warnings.size() == 1, "one warning");
    require(warnings[0] ==
                "cache directory /proc/.cache/lacuna: cannot be created: No such file or "
                "directory; compiled kernels are kept in memory only",
            warnings[0].c_str());
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST(Directory, WritableByOthersIsRefused) {
  for (const mode_t mode : {mode_t{0770}, mode_t{0707}}) {
    const Scratch scratch;
    const Key key = key_number(1);
    Store(options_in(scratch)).publish(key, kernel_for(key));
    ASSERT_EQ(::chmod(scratch.path("cache").c_str(), mode), 0);
    std::vector<std::string> warnings;
    Store store(options_in(scratch, &warnings));
    EXPECT_FALSE(store.on_disk());
    EXPECT_FALSE(store.load(key).has_value()) << "somebody else may have put it there";
    EXPECT_TRUE(works_from_memory(store));
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0], "cache directory " + scratch.path("cache") +
                               ": can be written by others (mode " +
                               (mode == 0770 ? "0770" : "0707") +
                               ", expected 0700); compiled kernels are kept in memory only");
  }
}

TEST(Directory, OpenedToOthersWhileInUseIsRefusedFromThenOn) {
  const Scratch scratch;
  std::vector<std::string> warnings;
  Store store(options_in(scratch, &warnings));
  const Key key = key_number(1);
  EXPECT_TRUE(store.publish(key, kernel_for(key)));
  EXPECT_TRUE(store.load(key).has_value());
  ASSERT_EQ(::chmod(scratch.path("cache").c_str(), 0777), 0);
  EXPECT_FALSE(store.load(key).has_value());
  EXPECT_FALSE(store.on_disk());
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(Directory, OwnedBySomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const Scratch scratch;
  const std::string directory = scratch.path("cache");
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  ASSERT_EQ(::chown(directory.c_str(), kNobody, kNobody), 0);
  const std::string owners = "is owned by uid 65534, not by uid 0";
  std::vector<std::string> warnings;
  StoreOptions options = options_in(scratch, &warnings);
  options.directory = directory;
  Store store(options);
  EXPECT_FALSE(store.on_disk());
  EXPECT_TRUE(works_from_memory(store));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], "cache directory " + directory + ": " + owners +
                             "; compiled kernels are kept in memory only");
}

TEST(Directory, FileInItsPlaceIsRefused) {
  const Scratch scratch;
  write_whole(scratch.path("cache"), "a file");
  std::vector<std::string> warnings;
  Store store(options_in(scratch, &warnings));
  EXPECT_TRUE(works_from_memory(store));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(read_whole(scratch.path("cache")), "a file");
}

TEST(Directory, RemovedWhileInUseIsMadeAgain) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const Key key = key_number(1);
  EXPECT_TRUE(store.publish(key, kernel_for(key)));
  ASSERT_EQ(::rename(scratch.path("cache").c_str(), scratch.path("gone").c_str()), 0);
  EXPECT_FALSE(store.load(key).has_value());
  EXPECT_TRUE(store.publish(key, kernel_for(key)));
  EXPECT_TRUE(store.load(key).has_value());
}

/// What every store on an unwritable directory must do: read, refuse politely, warn once.
void require_reads_but_does_not_publish(const StoreOptions& base, const Key& present,
                                        const std::string& reason) {
  std::vector<std::string> warnings;
  StoreOptions options = base;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  Store store(options);
  const auto entry = store.load(present);
  require(entry && is_kernel_of(*entry, present), "what is there can be read");
  for (int i = 100; i < 103; ++i) {
    const Key key = key_number(i);
    require(!store.publish(key, kernel_for(key, 200'000)), "no room to publish");
    const auto kept = store.load(key);
    require(kept && is_kernel_of(*kept, key), "the kernel stays in memory");
  }
  require(warnings.size() == 1, "one warning");
  const std::string expected = "cache directory " + options.directory +
                               ": cannot be written: " + reason +
                               "; kernels are compiled again next time";
  require(warnings[0] == expected, warnings[0].c_str());
  require(store.counters().publish_failures == 3, "three failures counted");
}

TEST(Directory, WithoutWritePermission) {
  const Scratch scratch;
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(scratch.path("home").c_str(), 0755), 0);
  if (::geteuid() == 0) {
    // Permissions do not bind root: a child becomes somebody else.
    ASSERT_EQ(::chown(scratch.path("home").c_str(), kNobody, kNobody), 0);
  }
  const pid_t child = start_child([&] {
    if (::geteuid() == 0) require(::setuid(kNobody) == 0, "another user");
    StoreOptions options;
    options.directory = scratch.path("home/cache");
    options.lock_directory = scratch.path("home/locks");
    const Key present = key_number(1);
    require(Store(options).publish(present, kernel_for(present)), "published");
    require(::chmod(scratch.path("home/cache/v1/sm_90a").c_str(), 0500) == 0, "chmod");
    require_reads_but_does_not_publish(options, present, "Permission denied");
    require(::chmod(scratch.path("home/cache/v1/sm_90a").c_str(), 0700) == 0, "chmod back");
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

void run_on_private_file_system(const std::function<void(const Scratch&)>& body) {
  const Scratch scratch;
  const pid_t child = start_child([&] {
    if (!mount_private_tmpfs(scratch.path("cache"), "size=256k")) return kSkipped;
    body(scratch);
    return 0;
  });
  const int status = wait_for_child(child);
  if (status == kSkipped) GTEST_SKIP() << "needs the right to mount a file system (root)";
  EXPECT_EQ(status, 0);
}

TEST(Directory, FullDisk) {
  run_on_private_file_system([](const Scratch& scratch) {
    const Key present = key_number(1);
    require(Store(options_in(scratch)).publish(present, kernel_for(present)), "published");
    write_whole(scratch.path("cache/ballast"), std::string(150'000, 'x'));
    require_reads_but_does_not_publish(options_in(scratch), present, "No space left on device");
    require(files_below(scratch.path("cache"), ".tmp.").empty(), "nothing half-written is left");
  });
}

TEST(Directory, ReadOnlyFileSystem) {
  run_on_private_file_system([](const Scratch& scratch) {
    const Key present = key_number(1);
    require(Store(options_in(scratch)).publish(present, kernel_for(present)), "published");
    require(::mount(nullptr, scratch.path("cache").c_str(), nullptr, MS_REMOUNT | MS_RDONLY,
                    nullptr) == 0,
            "remounted");
    require_reads_but_does_not_publish(options_in(scratch), present, "Read-only file system");
  });
}

}  // namespace
}  // namespace lacuna::cache
