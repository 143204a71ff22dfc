// What a launch of a group is given, against its plan.
#pragma once

#include "runtime/group/group.hpp"
#include "runtime/launch/bind_launch.hpp"

namespace lacuna::group {

/// Fills `bound`. False with a diagnostic for each misfit.
bool check_group_launch(const GroupPlan& plan, const lacuna_launch_args& args, BoundLaunch& bound,
                        Diagnostics& diagnostics);

}  // namespace lacuna::group
