// How long launches of a group take, as one rank sees it, and when each part of one begins and
// ends.
#pragma once

#include <barrier>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "lacuna/group.hpp"
#include "tools/run/kernels.hpp"

namespace lacuna::tools {

/// Of one launch, of one rank or of a group. Samples are of several launches, one behind the other,
/// as the layers of a model enqueue them: the host is ahead of the GPU then. `single_us`: of
/// launches that are waited for, which the host's own time is part of.
struct LaunchTimes {
  std::vector<double> sample_us, single_us;
};

/// How many launches of about `launch_us` a sample has.
std::size_t launches_of_sample(double launch_us);

/// Of launches on the stream of a place.
double time_sample_us(const Place& place, std::size_t launches, const std::function<void()>& launch,
                      const std::function<void()>& wait, Diagnostics& diagnostics);

/// One rank of a group that launches.
struct RankLaunches {
  const v1::Group& group;
  const v1::GroupPlan& plan;
  v1::LaunchArgs args;
  const Place& place;
  std::barrier<>& all;  ///< the ranks begin each sample together
};

/// All ranks with the same numbers.
LaunchTimes time_launches(const RankLaunches& rank, std::size_t samples, std::size_t launches,
                          DeviceErrors& errors);

/// [[what, us after the launch began on the stream], ..] in the order in which it was enqueued;
/// empty on the CPU.
nlohmann::ordered_json trace_launch(const RankLaunches& rank, DeviceErrors& errors);

}  // namespace lacuna::tools
