// Threads for compilers, which may need more stack than the caller's thread has.
#pragma once

#include <cstddef>
#include <functional>

namespace lacuna {

/// Calls work(item) for each item in [0, items), in this order as far as they do not overlap, on at
/// most `threads` threads with stacks of 8 MiB. Returns when all is done, or throws what one of
/// them has thrown; false if no thread could be started.
bool run_on_large_stacks(std::size_t threads, std::size_t items,
                         const std::function<void(std::size_t)>& work);

}  // namespace lacuna
