// Work shared out among threads, for the CPU's stages and both executors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lacuna {

/// Threads for `items` pieces of work: at most `threads` (0: all of the machine), at least 1.
std::size_t worker_count(std::int32_t threads, std::int64_t items);

/// Calls work(item, worker) for each item in [0, items), worker in [0, workers). A worker is one
/// thread at a time, so `worker` may index memory that only it uses. Returns when all is done, or
/// throws what a worker has thrown, once all workers have ended.
void parallel_for(std::size_t workers, std::int64_t items,
                  const std::function<void(std::int64_t, std::size_t)>& work);

}  // namespace lacuna
