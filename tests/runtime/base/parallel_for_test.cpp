#include "runtime/base/threads/parallel_for.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/base/threads/large_stacks.hpp"

namespace lacuna {
namespace {

TEST(ParallelFor, DoesEveryItemOnce) {
  std::vector<std::atomic<int>> done(1000);
  std::atomic<bool> is_stranger = false;
  parallel_for(3, 1000, [&](std::int64_t item, std::size_t worker) {
    ++done[static_cast<std::size_t>(item)];
    if (worker >= 3) is_stranger = true;
  });
  for (const auto& count : done) ASSERT_EQ(count, 1);
  EXPECT_FALSE(is_stranger);
  parallel_for(3, 0, [&](std::int64_t, std::size_t) { ADD_FAILURE() << "there is no item"; });
}

TEST(ParallelFor, HasNoMoreWorkersThanItemsAndOneAtLeast) {
  EXPECT_EQ(worker_count(8, 3), 3u);
  EXPECT_EQ(worker_count(2, 100), 2u);
  EXPECT_EQ(worker_count(5, 0), 1u);
  EXPECT_EQ(worker_count(0, 1), 1u);
  EXPECT_EQ(worker_count(0, 1 << 20), std::max(1u, std::thread::hardware_concurrency()));
}

TEST(ParallelFor, BeginsNothingBehindAnException) {
  int begun = 0;
  const auto work = [&](std::int64_t item, std::size_t) {
    ++begun;
    if (item == 3) throw std::bad_alloc();
  };
  EXPECT_THROW(parallel_for(1, 1000, work), std::bad_alloc);
  EXPECT_EQ(begun, 4);
}

TEST(LargeStacks, DoEveryItemOnce) {
  std::vector<std::atomic<int>> done(100);
  EXPECT_TRUE(run_on_large_stacks(3, 100, [&](std::size_t item) { ++done[item]; }));
  for (const auto& count : done) ASSERT_EQ(count, 1);
  EXPECT_TRUE(run_on_large_stacks(3, 0, [](std::size_t) {}));
}

TEST(ParallelFor, ThrowsWhatAWorkerThrew) {
  for (const std::size_t workers : {1U, 4U}) {
    std::atomic<int> running = 0;
    const auto work = [&](std::int64_t item, std::size_t) {
      ++running;
      if (item % 5 == 3) {
        --running;
        throw std::bad_alloc();
      }
      --running;
    };
    EXPECT_THROW(parallel_for(workers, 1000, work), std::bad_alloc);
    EXPECT_EQ(running, 0) << "all have ended";
  }
}

TEST(LargeStacks, ThrowWhatAThreadThrew) {
  EXPECT_THROW(run_on_large_stacks(3, 100, [](std::size_t) { throw std::runtime_error("no"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace lacuna
