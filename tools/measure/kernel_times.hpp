// The kernels of a launch, timed one by one on a GPU.
#pragma once

#include <string>
#include <vector>

#include "tools/run/tensors.hpp"

namespace lacuna::tools {

struct KernelTimes {
  std::string name;  ///< as `explain --shape` prints it
  std::vector<double> times_us{};
};

/// Launches with events around the kernels, each with the next of `sets`, for some seconds. Empty
/// where a launch is one kernel, and on the CPU, which has none.
std::vector<KernelTimes> time_kernels(const v1::Kernel& kernel,
                                      const std::vector<v1::LaunchArgs>& sets, const Place& place,
                                      double seconds, DeviceErrors& errors);

}  // namespace lacuna::tools
