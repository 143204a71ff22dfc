// What a launch of a kernel takes, in full: for hosts that generate or check their calls.
#pragma once

#include <string>

#include "runtime/engine/kernel.hpp"

namespace lacuna {

/// What lacuna_kernel_signature_json says. Its `arguments` follow from the rules that a launch
/// checks.
std::string kernel_signature(const KernelState& kernel);

}  // namespace lacuna
