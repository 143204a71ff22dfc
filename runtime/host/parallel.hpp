// A work queue over independent items, for the length of one call.
#pragma once

#include <functional>

namespace lacuna::host {

/// Calls work(worker, item) once for every item in [0, items), in order of item as far as workers
/// are free; the calling thread is worker 0. Workers number [0, workers_for(threads, items)).
/// A thread that the system refuses only makes it slower.
void parallel_for(int workers, int items, const std::function<void(int worker, int item)>& work);

/// `threads` 0: one for each hardware thread; never more than items, at least 1.
int workers_for(int threads, int items);

}  // namespace lacuna::host
