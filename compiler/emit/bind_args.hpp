// Where each member of a program's argument block comes from: tensors of the caller, sizes, slots
// of the workspace, parameters.
#pragma once

#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/emit/stage_facts.hpp"

namespace lacuna {

/// The fields in ascending order; members that this program leaves 0 have none. `program` holds its
/// values and slots already.
std::vector<ArgField> bind_args(const StageFacts& facts, const LaunchProgram& program);

/// The tensor maps of the wgmma family; none in mma. `program` holds its fields already.
std::vector<TensorMapFields> bind_maps(const StageFacts& facts, const LaunchProgram& program);

/// Index of the value or slot of this name; -1: none.
int find_value(const LaunchProgram& program, std::string_view name);
int find_slot(const LaunchProgram& program, std::string_view name);

}  // namespace lacuna
