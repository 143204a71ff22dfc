// A plan for sm_90a, as the tests of the wgmma family look at it.
#pragma once

#include "tests/passes/spec_documents.hpp"

namespace lacuna {

struct PlannedWgmma {
  Plan plan;
  std::string diagnostics;
  const AttendPlan& attend() const { return plan.attend; }
};

inline PlannedWgmma planned(const SpecDocument& document, const BuildOptions& options = {},
                            const char* target_name = "sm_90a") {
  Diagnostics diagnostics;
  Plan made = make_plan(document, options, target(target_name), diagnostics);
  return {std::move(made), text_of(diagnostics)};
}

/// "mma: head_dim 96: ..."
inline std::string family_of(const PlannedWgmma& planned) {
  const Chosen<AttendFamily>& family = planned.attend().family;
  return std::string(name_of(family.value)) + ": " + family.reason;
}

inline std::string tiles_of(const PlannedWgmma& planned) {
  const AttendPlan& attend = planned.attend();
  return std::to_string(attend.tile_q.value) + "x" + std::to_string(attend.tile_k.value) + "x" +
         std::to_string(attend.stages.value);
}

}  // namespace lacuna
