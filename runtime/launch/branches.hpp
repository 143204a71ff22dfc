// What one branch of a spec sees of a launch.
#pragma once

#include "runtime/base/arguments.hpp"

namespace lacuna {

/// Where the branch attends to means, their number stands for that of the keys.
LaunchShape shape_of_branch(const VariantSpec& branch, LaunchShape shape);

/// The same of tensors and parameters; k and v lie where the caller's tokens do. Allocates nothing.
BoundLaunch bind_branch(const VariantSpec& branch, const BoundLaunch& bound);

}  // namespace lacuna
