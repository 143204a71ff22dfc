// What a launch of a kernel takes, as JSON: for hosts that check names before they launch.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compiler/ir/program.hpp"
#include "compiler/spec/spec.hpp"
#include "runtime/base/arguments.hpp"

namespace lacuna {

/// {tensors: ["q", ...], parameters: [{name, dtype, shape, minimum, maximum, default, unit, doc}],
/// lse, keeps_selection}. `tensors` are the inputs that have to be passed; bounds without end are
/// "inf" and "-inf", as in a spec; a parameter without `default` has to be passed.
nlohmann::ordered_json signature_json(const Program& program, const LaunchContract& contract);

/// SHA-256 of the spec's canonical JSON: what `lacuna emit --form spec` prints.
std::string spec_digest(const VariantSpec& spec);

}  // namespace lacuna
