// `lacuna bench --gpus N`: a group of local ranks, threads of this process, beside one of them
// alone.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/spec.hpp"
#include "tools/common/session.hpp"
#include "tools/group/options.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/run/result.hpp"

namespace lacuna::tools {

struct GroupBenchOptions {
  GroupOptions group;
  LaunchOptions launch;  ///< its device says whether the ranks have GPUs (cuda:0 and on) or the CPU
  double seconds = 2;
};

/// Fills session.document and prints a table. Exit status kNumerics if the results differ from
/// those of one rank by more than rounding.
void bench_group(const SpecDocument& document, const Inputs& inputs,
                 const GroupBenchOptions& options, Session& session);

}  // namespace lacuna::tools
