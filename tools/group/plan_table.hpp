// A plan of a group as people read it, and the plan of a group that is not there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/ir/program.hpp"
#include "compiler/target/target.hpp"
#include "tools/group/options.hpp"

namespace lacuna::tools {

/// The schemes, what each sends and computes, and why one is taken. `plan`: lacuna_group_plan_json.
std::string print_group_plan(const nlohmann::ordered_json& plan, bool color);

/// What lacuna_group_plan_json would say on `options.gpus` ranks of this target. Null with
/// diagnostics if the spec does not allow it.
nlohmann::ordered_json plan_for_explain(const SpecDocument& document, const BuildOptions& build,
                                        const Target& target, const LaunchShape& shape,
                                        const GroupOptions& options, Diagnostics& diagnostics);

}  // namespace lacuna::tools
