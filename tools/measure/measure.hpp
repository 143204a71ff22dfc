// How often to measure.
#pragma once

#include <cstddef>
#include <functional>

namespace lacuna::tools {

/// Calls `body` with 0, 1, ... until the time is up: at least 3 and at most 200 times.
void repeat_for(double seconds, const std::function<void(std::size_t run)>& body);

}  // namespace lacuna::tools
