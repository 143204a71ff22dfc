// The store within one process: layers, single flight, locks between stores, counters.
#include "cache/store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "cache/files/locks.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Store, CreatesNothingBeforeTheFirstPublish) {
  const Scratch scratch;
  Store store(options_in(scratch));
  EXPECT_FALSE(store.load(key_number(1)).has_value());
  EXPECT_TRUE(store.list().empty());
  EXPECT_TRUE(store.on_disk());
  EXPECT_FALSE(exists(scratch.path("cache")));
}

TEST(Store, PublishedEntriesOutliveTheProcess) {
  const Scratch scratch;
  const Key key = key_number(1);
  EXPECT_TRUE(Store(options_in(scratch)).publish(key, kernel_for(key)));
  Store store(options_in(scratch));
  const auto loaded = store.load(key);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(is_kernel_of(*loaded, key));
  EXPECT_EQ(loaded->metadata, kernel_for(key).metadata);
  EXPECT_EQ(loaded->log, kernel_for(key).log);
  EXPECT_FALSE(store.load(key_number(2)).has_value());
  EXPECT_EQ(store.counters().hits, 1U);
  EXPECT_EQ(store.counters().misses, 1U);
  EXPECT_TRUE(files_below(scratch.path("cache"), ".tmp.").empty());
}

TEST(Store, ObtainBuildsOnceAndServesFromMemoryUntilPublished) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const Key key = key_number(1);
  int builds = 0;
  const auto build = [&]() -> std::optional<Entry> {
    ++builds;
    return kernel_for(key);
  };
  EXPECT_FALSE(store.obtain(key, build).hit);
  EXPECT_FALSE(exists(file_of(scratch, key)));
  EXPECT_TRUE(store.obtain(key, build).hit);
  EXPECT_TRUE(store.publish(key, *store.load(key)));
  EXPECT_TRUE(store.obtain(key, build).hit);
  EXPECT_EQ(builds, 1);
  EXPECT_EQ(store.counters().published, 1U);
}

TEST(Store, FailedBuildIsReportedEachTimeAndNotRemembered) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const Key key = key_number(1);
  int builds = 0;
  for (int i = 0; i < 2; ++i) {
    const auto result = store.obtain(key, [&]() -> std::optional<Entry> {
      ++builds;
      return std::nullopt;
    });
    EXPECT_FALSE(result.entry.has_value());
    EXPECT_FALSE(result.hit);
  }
  EXPECT_EQ(builds, 2);
}

TEST(Store, ThrowingBuildLeavesTheKeyFree) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const Key key = key_number(1);
  EXPECT_THROW(
      store.obtain(key, []() -> std::optional<Entry> { throw std::runtime_error("build"); }),
      std::runtime_error);
  EXPECT_TRUE(store.obtain(key, [&] { return kernel_for(key); }).entry.has_value());
}

TEST(Store, RejectedByTheDriverIsForgottenEverywhere) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const Key key = key_number(1), unpublished = key_number(2);
  store.publish(key, kernel_for(key));
  store.obtain(unpublished, [&] { return kernel_for(unpublished); });
  store.reject(key);
  store.reject(unpublished);
  EXPECT_FALSE(store.load(key).has_value());
  EXPECT_FALSE(store.load(unpublished).has_value());
  EXPECT_FALSE(exists(file_of(scratch, key)));
  EXPECT_EQ(store.counters().rejected, 2U);
}

TEST(Store, DoesNotPublishWhatCouldNeverBeLoaded) {
  const Scratch scratch;
  std::vector<std::string> warnings;
  Store store(options_in(scratch, &warnings));
  Key key = key_number(1);
  EXPECT_FALSE(store.publish(key, {key.text, "{}", "", {"int main() {}"}}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], "cache directory " + scratch.path("cache") +
                             ": a kernel that is not a cubin cannot be stored; kernels are "
                             "compiled again next time");
  key.target = "../../escape";
  EXPECT_FALSE(store.publish(key, kernel_for(key)));
  EXPECT_EQ(store.counters().publish_failures, 2U);
  EXPECT_TRUE(files_below(scratch.path(), "escape").empty());
}

TEST(Store, SixteenThreadsBuildOnceEvenWithoutLocks) {
  const Scratch scratch;
  StoreOptions options = options_in(scratch);
  options.lock_directory = "/proc/no/such";
  Store store(options);
  constexpr int kThreads = 16;
  for (int round = 0; round < 20; ++round) {
    const Key key = key_number(round);
    std::atomic<int> builds{0}, hits{0}, right{0};
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        const auto result = store.obtain(
            key,
            [&]() -> std::optional<Entry> {
              ++builds;
              std::this_thread::sleep_for(milliseconds(2));
              return kernel_for(key);
            },
            seconds(600));
        right += result.entry && is_kernel_of(*result.entry, key) ? 1 : 0;
        hits += result.hit ? 1 : 0;
        if (!result.hit) store.publish(key, *result.entry);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(builds, 1);
    EXPECT_EQ(hits, kThreads - 1);
    EXPECT_EQ(right, kThreads);
  }
  EXPECT_EQ(store.counters().published, 20U);
}

TEST(Store, WaitersOfAFailedBuildBuildThemselves) {
  const Scratch scratch;
  Store store(options_in(scratch));
  const Key key = key_number(1);
  std::atomic<int> builds{0};
  std::latch leader_builds(1);
  std::atomic<bool> waiter_started{false};
  std::thread leader([&] {
    store.obtain(key, [&]() -> std::optional<Entry> {
      ++builds;
      leader_builds.count_down();
      while (!waiter_started) std::this_thread::yield();
      return std::nullopt;
    });
  });
  leader_builds.wait();
  waiter_started = true;
  const auto result = store.obtain(
      key,
      [&] {
        ++builds;
        return kernel_for(key);
      },
      seconds(600));
  leader.join();
  EXPECT_TRUE(result.entry.has_value());
  EXPECT_EQ(builds, 2);
}

TEST(Store, WaiterOutOfPatienceBuildsItself) {
  const Scratch scratch;
  Store first(options_in(scratch)), second(options_in(scratch));
  const Key key = key_number(1);
  std::latch builds(1), waiter_is_done(1);
  std::thread slow([&] {
    first.obtain(key, [&] {
      builds.count_down();
      waiter_is_done.wait();
      return kernel_for(key);
    });
  });
  builds.wait();
  const auto result = second.obtain(
      key, [&] { return kernel_for(key); }, milliseconds(20));
  waiter_is_done.count_down();
  slow.join();
  EXPECT_FALSE(result.hit);
  EXPECT_TRUE(is_kernel_of(*result.entry, key));
}

TEST(Store, NobodyWaitsLongForALaunchThatDoesNotCome) {
  const Scratch scratch;
  StoreOptions options = options_in(scratch);
  options.launch_grace = milliseconds(20);
  Store first(options), second(options);
  const Key key = key_number(1);
  first.obtain(key, [&] { return kernel_for(key); });
  const auto result = second.obtain(
      key, [&] { return kernel_for(key); }, std::chrono::hours(24));
  EXPECT_FALSE(result.hit);
  EXPECT_TRUE(is_kernel_of(*result.entry, key));
}

TEST(Store, LockIsKeptUntilPublishedSoThatOthersCanUseTheResult) {
  const Scratch scratch;
  Store first(options_in(scratch)), second(options_in(scratch));
  const Key key = key_number(1);
  const auto built = first.obtain(
      key, [&] { return kernel_for(key); }, seconds(600));
  std::thread launch_then_publish([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(first.publish(key, *built.entry));
  });
  bool built_again = false;
  const auto result = second.obtain(
      key,
      [&] {
        built_again = true;
        return kernel_for(key);
      },
      seconds(600));
  launch_then_publish.join();
  EXPECT_FALSE(built_again);
  EXPECT_TRUE(result.hit);
  EXPECT_TRUE(is_kernel_of(*result.entry, key));
}

/// Could another process start to build this key?
bool can_build(const StoreOptions& options, const Key& key) {
  const NodeLocks locks(options.lock_directory, options.directory);
  return locks.try_acquire("build\n" + key.text).is_held();
}

TEST(Store, LockEndsWithPublishRejectFailureOrTheStore) {
  const Scratch scratch;
  const StoreOptions options = options_in(scratch);
  const Key published = key_number(1), unpublishable = key_number(2), rejected = key_number(3),
            failed = key_number(4), kept = key_number(5);
  {
    Store store(options);
    for (const Key& key : {published, unpublishable, rejected, kept}) {
      store.obtain(key, [&] { return kernel_for(key); });
      EXPECT_FALSE(can_build(options, key));
    }
    EXPECT_TRUE(store.publish(published, kernel_for(published)));
    EXPECT_TRUE(can_build(options, published));
    EXPECT_FALSE(store.publish(unpublishable, {}));
    EXPECT_TRUE(can_build(options, unpublishable));
    store.reject(rejected);
    EXPECT_TRUE(can_build(options, rejected));
    store.obtain(failed, []() -> std::optional<Entry> { return std::nullopt; });
    EXPECT_TRUE(can_build(options, failed));
    EXPECT_FALSE(can_build(options, kept));
  }
  EXPECT_TRUE(can_build(options, kept));
}

TEST(NodeLocks, NamesDoNotWaitForEachOther) {
  const Scratch scratch;
  const NodeLocks locks(scratch.path("locks"), "scope"), other(scratch.path("locks"), "other");
  std::vector<NodeLock> held;
  for (int i = 0; i < 500; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_FALSE(locks.is_held(name));
    held.push_back(locks.try_acquire(name));
    EXPECT_TRUE(held.back().is_held()) << i;
    EXPECT_TRUE(locks.is_held(name));
    EXPECT_FALSE(locks.try_acquire(name).is_held());
    EXPECT_TRUE(other.try_acquire(name).is_held());
  }
  held.clear();
  EXPECT_FALSE(locks.is_held("0"));
}

TEST(NodeLocks, ALinkThatSomebodyPutInTheirPlaceIsNotFollowed) {
  const Scratch scratch;
  ASSERT_EQ(::mkdir(scratch.path("victim").c_str(), 0700), 0);
  ASSERT_EQ(::symlink(scratch.path("victim").c_str(), scratch.path("locks").c_str()), 0);
  EXPECT_FALSE(NodeLocks(scratch.path("locks"), "scope").try_acquire("key").is_held());
  EXPECT_EQ(files_below(scratch.path("victim"), ""), std::vector<std::string>());
}

TEST(NodeLocks, WithoutADirectoryNothingIsHeldAndNobodyWaits) {
  EXPECT_FALSE(NodeLocks("", "scope").try_acquire("key").is_held());
  EXPECT_FALSE(NodeLocks("/proc/no/such", "scope").is_held("key"));
  const Scratch scratch;
  StoreOptions options = options_in(scratch);
  options.lock_directory = "/proc/no/such";
  Store store(options);
  const Key key = key_number(1);
  EXPECT_TRUE(store
                  .obtain(
                      key, [&] { return kernel_for(key); }, std::chrono::hours(24))
                  .entry.has_value());
  EXPECT_TRUE(store.publish(key, kernel_for(key)));
}

}  // namespace
}  // namespace lacuna::cache
