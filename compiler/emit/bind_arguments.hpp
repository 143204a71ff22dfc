// Where each member of a program's argument block comes from: tensors of the caller, sizes, slots
// of the workspace, parameters.
#pragma once

#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {

/// The fields in ascending order; members that this program leaves 0 have none. `launch` holds its
/// values and slots already.
std::vector<ArgField> bind_arguments(const Plan& plan, const LoweredPlan& lowered,
                                     const LaunchProgram& launch);

/// The tensor maps of the wgmma family; none in mma. `launch` holds its fields already.
std::vector<TensorMapFields> bind_maps(const Plan& plan, const LaunchProgram& launch);

/// What the second attend of a plan finds in place of these: slots and values of its own, by their
/// names with kPackedPrefix, and maps of boxes of several heads. `packed`: plan_of_packed.
BlockChange bind_packed(const Plan& packed, const LaunchProgram& launch);

/// Index of the value or slot of this name; -1: none.
int find_value(const LaunchProgram& launch, std::string_view name);
int find_slot(const LaunchProgram& launch, std::string_view name);

}  // namespace lacuna
