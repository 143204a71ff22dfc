// Threads that stay between calls: what they do, who shares them, what a child of fork() has.
#include "runtime/base/threads/thread_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "tests/runtime/child_process.hpp"

namespace lacuna {
namespace {

/// Items that take so long that every worker gets some.
void work_a_while(std::int64_t, std::size_t) {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
}

TEST(ThreadPool, DoesEveryItemOnce) {
  const ThreadPool pool;
  const Threads threads(3, pool.lender());
  for (const std::int64_t items : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<std::size_t>(items));
    std::atomic<bool> is_stranger = false;
    parallel_for(threads, 3, items, [&](std::int64_t item, std::size_t worker) {
      ++done[static_cast<std::size_t>(item)];
      if (worker >= 3) is_stranger = true;
    });
    for (const auto& count : done) ASSERT_EQ(count, 1);
    EXPECT_FALSE(is_stranger);
  }
}

TEST(ThreadPool, CallsShareItsThreads) {
  const ThreadPool pool;
  const Threads threads(4, pool.lender());
  std::mutex mutex;
  std::set<std::thread::id> seen;
  const auto call = [&] {
    parallel_for(threads, 4, 16, [&](std::int64_t item, std::size_t worker) {
      work_a_while(item, worker);
      const std::scoped_lock lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  };
  for (int n = 0; n < 20; ++n) call();
  EXPECT_GT(seen.size(), 1U);
  EXPECT_LE(seen.size(), 4U) << "the caller and three of the pool's";
}

TEST(ThreadPool, AWorkerIsOneThreadAtATime) {
  const ThreadPool pool;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&pool] {
      for (int call = 0; call < 50; ++call) {
        std::vector<int> counts(3, 0);  // not atomic: each worker has its own
        parallel_for({3, pool.lender()}, 3, 100,
                     [&](std::int64_t, std::size_t worker) { ++counts[worker]; });
        EXPECT_EQ(counts[0] + counts[1] + counts[2], 100);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPool, WorkMayCallAgain) {
  const ThreadPool pool;
  const Threads threads(3, pool.lender());
  std::atomic<int> done = 0;
  parallel_for(threads, 3, 6, [&](std::int64_t, std::size_t) {
    parallel_for(threads, 3, 5, [&](std::int64_t, std::size_t) { ++done; });
  });
  EXPECT_EQ(done, 30);
}

TEST(ThreadPool, ThrowsWhatAWorkerThrewAndServesOn) {
  const ThreadPool pool;
  const Threads threads(3, pool.lender());
  const auto fail = [](std::int64_t item, std::size_t) {
    if (item % 5 == 3) throw std::bad_alloc();
  };
  for (int n = 0; n < 20; ++n) EXPECT_THROW(parallel_for(threads, 3, 100, fail), std::bad_alloc);
  std::atomic<int> done = 0;
  parallel_for(threads, 3, 100, [&](std::int64_t, std::size_t) { ++done; });
  EXPECT_EQ(done, 100);
}

TEST(ThreadPool, ItsThreadsTakeNoSignals) {
  const ThreadPool pool;
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> open = 0, theirs = 0;
  parallel_for({3, pool.lender()}, 3, 30, [&](std::int64_t item, std::size_t worker) {
    work_a_while(item, worker);
    if (std::this_thread::get_id() == caller) return;
    ++theirs;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (sigismember(&mask, SIGINT) == 0 || sigismember(&mask, SIGUSR1) == 0) ++open;
  });
  EXPECT_GT(theirs, 0);
  EXPECT_EQ(open, 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0) << "the caller's mask is what it was";
}

TEST(ThreadPool, AChildOfForkMakesThreadsOfItsOwn) {
#if defined(LACUNA_SANITIZES_THREAD) || defined(LACUNA_SANITIZES_ADDRESS)
  GTEST_SKIP()
      << "the sanitizers' own locks and threads do not survive the fork of several threads";
#endif
  auto pool = std::make_unique<ThreadPool>();
  const auto count = [&pool] {
    std::atomic<int> done = 0, elsewhere = 0;
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for({3, pool->lender()}, 3, 60, [&](std::int64_t item, std::size_t worker) {
      work_a_while(item, worker);
      ++done;
      if (std::this_thread::get_id() != caller) ++elsewhere;
    });
    return elsewhere > 0 ? done.load() : -1;
  };
  EXPECT_EQ(count(), 60);
  EXPECT_EQ(outcome_of_child([&] {
              if (count() != 60) return 1;
              if (count() != 60) return 2;
              pool.reset();
              return 0;
            }),
            "exit 0");
  EXPECT_EQ(outcome_of_child([&] {
              pool.reset();  // that it never used
              return 0;
            }),
            "exit 0");
  EXPECT_EQ(count(), 60);
}

}  // namespace
}  // namespace lacuna
