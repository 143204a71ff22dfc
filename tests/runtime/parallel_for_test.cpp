#include "runtime/base/parallel_for.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>

#include "runtime/base/large_stacks.hpp"

namespace lacuna {
namespace {

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
