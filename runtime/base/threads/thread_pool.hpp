// Threads that stay between launches. A launch on the CPU takes a few milliseconds at most, and
// starting threads for each took a good part of that.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/base/threads/parallel_for.hpp"

namespace lacuna {

/// Threads are made when work first asks for them, up to as many as the most demanding call wants,
/// and wait for more until the pool is destroyed. Calls of several threads share them: each call
/// works in its own thread too, so that it ends whoever else has the others. They take no signals.
/// The child of a fork() has none of them, and makes its own.
class ThreadPool {
 public:
  ThreadPool();
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Valid while the pool lives.
  const ThreadLender* lender() const { return &lender_; }

 private:
  struct State;
  static void lend(void* pool, std::size_t workers, ThreadLender::Work work, void* context);
  State& state();

  std::atomic<State*> state_;
  ThreadLender lender_;
};

}  // namespace lacuna
