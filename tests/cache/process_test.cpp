// Several processes at one directory: one build for a cold key, and sudden death at any moment.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <optional>
#include <random>
#include <thread>

#include "cache/entry_format.hpp"
#include "cache/files/locks.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kProcesses = 8;
constexpr auto kPatience = seconds(600);

/// Holds children back until all have been started.
class StartingLine {
 public:
  StartingLine() {
    if (::pipe(ends_) != 0) std::abort();
  }
  ~StartingLine() { ::close(ends_[0]); }
  void wait() const {  // in a child: until the last writer is gone
    ::close(ends_[1]);
    char byte = 0;
    while (::read(ends_[0], &byte, 1) > 0) {
    }
  }
  void go() const { ::close(ends_[1]); }

 private:
  int ends_[2];
};

/// One rank of a job: wants the kernel, launches it, publishes it if it built it.
int run_rank(const Scratch& scratch, const Key& key, const std::function<void()>& compile) {
  Store store(options_in(scratch));
  const auto result = store.obtain(
      key,
      [&]() -> std::optional<Entry> {
        count_up(scratch.path("compiles"));
        compile();
        return kernel_for(key);
      },
      kPatience);
  require(result.entry && is_kernel_of(*result.entry, key), "the kernel of this key");
  if (!result.hit) {
    std::this_thread::sleep_for(milliseconds(20));  // the first launch
    require(store.publish(key, *result.entry), "published");
  }
  return 0;
}

TEST(Processes, AChildDoesNotPutOffTheReleaseOfALock) {
  const Scratch scratch;
  const NodeLocks locks(scratch.path("locks"), "scope");
  std::optional<NodeLock> lock = locks.try_acquire("key");
  ASSERT_TRUE(lock->is_held());
  const StartingLine line;
  const pid_t child = start_child([&] {
    line.wait();  // alive, with a copy of the lock's file
    return 0;
  });
  EXPECT_TRUE(locks.is_held("key"));
  lock.reset();
  EXPECT_FALSE(locks.is_held("key"));
  line.go();
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST(Processes, ColdKeyIsCompiledOnce) {
  const Scratch scratch;
  constexpr int kKeys = 3;
  for (int number = 0; number < kKeys; ++number) {
    const Key key = key_number(number);
    const StartingLine line;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(start_child([&] {
        line.wait();
        return run_rank(scratch, key, [] { std::this_thread::sleep_for(milliseconds(50)); });
      }));
    }
    line.go();
    for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
    EXPECT_EQ(count_of(scratch.path("compiles")), number + 1);
  }
  EXPECT_EQ(Store(options_in(scratch)).list().size(), static_cast<std::size_t>(kKeys));
}

TEST(Processes, DeathOfTheCompilingProcessPassesTheWorkOn) {
  const Scratch scratch;
  const Key key = key_number(1);
  const pid_t leader = start_child([&] { return run_rank(scratch, key, [] { ::pause(); }); });
  while (!exists(scratch.path("compiles"))) std::this_thread::sleep_for(milliseconds(1));
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(start_child([&] { return run_rank(scratch, key, [] {}); }));
  }
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(count_of(scratch.path("compiles")), 1) << "the others wait";
  ::kill(leader, SIGKILL);
  EXPECT_EQ(wait_for_child(leader), 128 + SIGKILL);
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  EXPECT_EQ(count_of(scratch.path("compiles")), 2);
}

/// Publishes without end; an entry replaces one of another length.
int publish_forever(const Scratch& scratch, int keys) {
  Store store(options_in(scratch));
  for (int i = 0;; ++i) {
    const Key key = key_number(i % keys);
    store.publish(key, kernel_for(key, static_cast<std::size_t>(300'000 + 1000 * (i % 7))));
  }
}

TEST(Processes, KilledWhilePublishingLeavesNoWrongEntry) {
  const Scratch scratch;
  constexpr int kKeys = 5, kRounds = 60;
  std::mt19937 random(1);
  std::uniform_int_distribution<int> delay_us(200, 8000);
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = start_child([&] { return publish_forever(scratch, kKeys); });
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(wait_for_child(child), 128 + SIGKILL);
    Store store(options_in(scratch));
    for (int i = 0; i < kKeys; ++i) {
      const auto entry = store.load(key_number(i));
      EXPECT_TRUE(!entry || is_kernel_of(*entry, key_number(i)));
    }
    ASSERT_EQ(store.counters().rejected, 0U) << "a visible entry is complete";
  }
  for (const std::string& path : files_below(scratch.path("cache"), ".tmp.")) age(path, 2);
  Store store(options_in(scratch));
  ASSERT_TRUE(store.publish(key_number(0), kernel_for(key_number(0))));
  EXPECT_TRUE(files_below(scratch.path("cache"), ".tmp.").empty());
}

TEST(Processes, SweepTakesOnlyFilesOfWritersThatAreGone) {
  const Scratch scratch;
  const Key key = key_number(1);
  ASSERT_TRUE(Store(options_in(scratch)).publish(key, kernel_for(key)));
  struct utsname names {};
  ASSERT_EQ(::uname(&names), 0);
  std::string host = names.nodename;
  for (char& c : host) c = c == '.' ? '-' : c;
  const std::string folder = scratch.path("cache/v1/sm_90a/");
  const std::string ours_old = folder + ".tmp." + host + ".1.0000", ours_new = ours_old + "1",
                    theirs_new = folder + ".tmp.x" + host + ".1.0000",
                    theirs_old = theirs_new + "1";
  const auto write_all = [&] {
    for (const std::string& path : {ours_old, ours_new, theirs_old, theirs_new})
      write_whole(path, "half");
    age(ours_old, 2);
    age(theirs_new, 2);
    age(theirs_old, 25);
  };
  const auto expect_swept = [&] {
    EXPECT_FALSE(exists(ours_old));
    EXPECT_TRUE(exists(ours_new));
    EXPECT_TRUE(exists(theirs_new)) << "clocks of hosts differ";
    EXPECT_FALSE(exists(theirs_old));
  };
  write_all();
  Store store(options_in(scratch));
  ASSERT_TRUE(store.publish(key, kernel_for(key)));
  expect_swept();
  write_all();
  EXPECT_EQ(store.prune(1 << 20), 8U);
  expect_swept();
  write_all();
  EXPECT_EQ(store.clear(), 16U + encode_entry(kernel_for(key)).size());
  EXPECT_EQ(files_below(scratch.path("cache"), ".tmp."), std::vector<std::string>());
}

TEST(Processes, ReadersWritersAndEvictionTogether) {
  const Scratch scratch;
  constexpr int kKeys = 12, kSteps = 150;
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    children.push_back(start_child([&, process] {
      StoreOptions options = options_in(scratch);
      options.byte_cap = 6 * encode_entry(kernel_for(key_number(0), 5000)).size();
      Store store(options);
      std::mt19937 random(static_cast<unsigned>(process));
      for (int step = 0; step < kSteps; ++step) {
        const Key key = key_number(static_cast<int>(random() % kKeys));
        const auto result = store.obtain(
            key, [&] { return kernel_for(key, 5000); }, milliseconds(50));
        require(result.entry && is_kernel_of(*result.entry, key), "the kernel of this key");
        if (!result.hit) require(store.publish(key, *result.entry), "published");
      }
      require(store.counters().rejected == 0, "no entry rejected");
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
}

}  // namespace
}  // namespace lacuna::cache
