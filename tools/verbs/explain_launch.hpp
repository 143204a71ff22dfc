// The kernels of a launch and the memory between them, at one shape.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/emit/launch_program.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna::tools {

/// Three tables: the kernels in their order (grid, threads, shared memory), why each value of them
/// is what it is, and the slots of the workspace. One sentence if the workspace of this shape
/// cannot be counted.
std::string print_launch(const LoweredPlan& lowered, const LaunchProgram& program,
                         const LaunchShape& shape, bool color);

/// The same, and the fields of each kernel's Config: their origin is the spec where the document
/// has the field that they come from.
nlohmann::ordered_json launch_json(const LoweredPlan& lowered, const LaunchProgram& program,
                                   const SpecDocument& document, const LaunchShape& shape);

}  // namespace lacuna::tools
