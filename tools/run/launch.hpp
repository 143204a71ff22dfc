// One sparse run and its dense twin, on one device: outputs, counters, times.
#pragma once

#include <optional>

#include "tools/common/session.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/run/result.hpp"

namespace lacuna::tools {

/// Nothing if the library or the driver fails, which has then been reported.
std::optional<RunResult> run_and_measure(const SpecDocument& document, const Inputs& inputs,
                                         const LaunchOptions& options, Session& session);

}  // namespace lacuna::tools
