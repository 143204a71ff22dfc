// How often to measure.
#pragma once

#include <cstddef>
#include <functional>

namespace lacuna::tools {

/// Calls `body` with 0, 1, ... until the time is up: at least 3 and at most 200 times. `done`, if
/// given, is told before each call what share is behind.
void repeat_for(double seconds, const std::function<void(std::size_t run)>& body,
                const std::function<void(double share)>& done = {});

}  // namespace lacuna::tools
