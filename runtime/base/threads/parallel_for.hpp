// Shares work out among threads, for the ops on the CPU and for both executors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lacuna {

/// Where an executor borrows threads. A plain table, because the executor may be a plugin.
struct ThreadLender {
  using Work = void (*)(void* context, std::size_t worker);
  /// Calls work(context, worker), which throws nothing, once for worker 0 in the calling thread and
  /// at most once for each of the others below `workers` in threads that are lent. Returns when all
  /// calls have.
  void (*lend)(void* self, std::size_t workers, Work work, void* context) = nullptr;
  void* self = nullptr;
};

/// How many threads work may have, and from whom.
struct Threads {
  Threads(std::int32_t count = 0,  // NOLINT(google-explicit-constructor): a number says enough
          const ThreadLender* lender = nullptr)
      : count(count), lender(lender) {}

  std::int32_t count;          ///< 0: all of the machine
  const ThreadLender* lender;  ///< null: they are made for each call
};

/// Threads for `items` pieces of work: at most `threads`, at least 1.
std::size_t worker_count(const Threads& threads, std::int64_t items);

/// Calls work(item, worker) for each item in [0, items), worker in [0, workers). A worker is one
/// thread at a time, so `worker` may index memory that only it uses. Returns when all is done, or
/// throws what a worker has thrown, once all workers have ended.
void parallel_for(const Threads& threads, std::size_t workers, std::int64_t items,
                  const std::function<void(std::int64_t, std::size_t)>& work);
/// With threads of its own.
void parallel_for(std::size_t workers, std::int64_t items,
                  const std::function<void(std::int64_t, std::size_t)>& work);

}  // namespace lacuna
