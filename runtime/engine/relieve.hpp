// Down the ladder of compiler/passes/relief.hpp: compiles one plan after the other until the
// assembler has registers for all that one keeps in them.
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

/// The first plan that is compiled without complaint; else the one that spills least. Plans that
/// differ in nothing from those before are left out. Nothing, with a diagnostic, if the source of
/// the first cannot be compiled, or if `options` hold on to the wgmma family and it spills.
std::optional<RelievedBuild> build_relieved(const Plan& plan, const SpecDocument& document,
                                            const BuildOptions& options,
                                            const CompileSource& compile, Diagnostics& diagnostics);

/// The plan of a later rung; nothing if it cannot be.
std::optional<Plan> relieved_plan(const SpecDocument& document, BuildOptions options, int relief,
                                  const Target& target);

/// A note on speed: what differs from the plan that was the first choice, and what took registers.
Diagnostic relief_note(const SpecDocument& document, const Plan& first, const Plan& taken,
                       const std::vector<std::string>& complaints);

}  // namespace lacuna
