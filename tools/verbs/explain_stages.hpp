// The kernels of a launch and the memory between them, at one shape.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/emit/launch_program.hpp"

namespace lacuna::tools {

/// Two tables: stages in their order (grid, threads, shared memory), and the slots of the
/// workspace. One sentence if the workspace of this shape cannot be counted.
std::string print_stages(const LaunchProgram& program, const LaunchShape& shape, bool color);

nlohmann::ordered_json stages_json(const LaunchProgram& program, const LaunchShape& shape);

}  // namespace lacuna::tools
