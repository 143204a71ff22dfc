// Compiles the plans of compiler/passes/relief.hpp one after the other, until no kernel that ought
// to keep its values in registers spills them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace lacuna {

struct RelievedBuild {
  int relief = 0;
  Plan plan;
  CudaSource source;
  Compilation compilation;
  std::vector<std::string> complaints;  ///< about the plans before it, one for each
};

using CompileSource = std::function<Compilation(const CudaSource&, Diagnostics&)>;

/// The first plan that compiles without complaint; else the one that spills least. Rungs that do
/// not change the plan are skipped. Returns nothing, with a diagnostic, if the first source cannot
/// be compiled, or if `options` insist on the wgmma family and it spills.
std::optional<RelievedBuild> build_relieved(const Plan& plan, const SpecDocument& document,
                                            const BuildOptions& options,
                                            const CompileSource& compile, Diagnostics& diagnostics);

/// The plan of a later rung; nothing if the target cannot have it.
std::optional<Plan> relieved_plan(const SpecDocument& document, BuildOptions options, int relief,
                                  const Target& target);

/// A note on speed: how the plan differs from the first choice, and what took the registers.
Diagnostic relief_note(const SpecDocument& document, const Plan& first, const Plan& taken,
                       const std::vector<std::string>& complaints);

}  // namespace lacuna
