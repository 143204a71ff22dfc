// The argument block of a kernel: the bytes that a launch hands over, laid out by
// KernelLaunch::fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/emit/launch_program.hpp"
#include "runtime/arguments.hpp"

namespace lacuna {

/// Writes all `launch.args_bytes` bytes. `values`: LaunchProgram::values for bound.shape.
void fill_argument_block(const KernelLaunch& launch, const BoundLaunch& bound,
                         const std::int32_t* values, std::byte* block);

}  // namespace lacuna
