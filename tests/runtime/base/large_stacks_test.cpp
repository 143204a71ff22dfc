// Work shared out among threads with large stacks.
#include "runtime/base/threads/large_stacks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace lacuna {
namespace {

TEST(LargeStacks, EachItemIsDoneOnce) {
  constexpr std::size_t kItems = 100;
  for (const std::size_t threads : {1U, 3U, 200U}) {
    std::vector<std::atomic<int>> done(kItems);
    EXPECT_TRUE(run_on_large_stacks(threads, kItems, [&](std::size_t item) { ++done[item]; }));
    for (const auto& count : done) EXPECT_EQ(count, 1);
  }
}

TEST(LargeStacks, OneThreadKeepsTheOrder) {
  std::vector<std::size_t> items;
  EXPECT_TRUE(run_on_large_stacks(1, 4, [&](std::size_t item) { items.push_back(item); }));
  EXPECT_EQ(items, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(LargeStacks, NothingToDoIsDone) {
  EXPECT_TRUE(run_on_large_stacks(4, 0, [](std::size_t) { FAIL() << "called"; }));
}

TEST(LargeStacks, HoldSevenMegabytes) {
  int sum = 0;
  EXPECT_TRUE(run_on_large_stacks(1, 1, [&](std::size_t) {
    constexpr std::size_t kBytes = std::size_t{7} << 20;
    volatile char bytes[kBytes];
    for (std::size_t n = 0; n < kBytes; n += 4096) bytes[n] = 1;
    for (std::size_t n = 0; n < kBytes; n += 4096) sum += bytes[n];
  }));
  EXPECT_EQ(sum, 7 * 256);
}

}  // namespace
}  // namespace lacuna
