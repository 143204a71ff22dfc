// Where the kernels of an engine come from: bundles that the host has added, the cache, or NVRTC,
// if there is one and compiling is allowed.
#pragma once

#include <memory>

#include "compiler/target/plan.hpp"
#include "runtime/engine/engine.hpp"

namespace lacuna {

/// The engine's NVRTC, for a kernel that is neither among those added nor in the cache. Null where
/// there is none (kNoNvrtc) or compiling is forbidden (kNoKernel); the diagnostic names the kernels
/// that were added and the command that makes this one.
std::shared_ptr<const Nvrtc> compiler_for(EngineState& engine, const Plan& plan,
                                          Diagnostics& diagnostics);

/// Whether the kernel of a plan is there already, or could be compiled.
bool can_supply(EngineState& engine, const Plan& plan, const SpecDocument& document);

}  // namespace lacuna
