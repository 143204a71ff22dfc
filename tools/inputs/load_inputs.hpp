// Reads q, k, v and the parameters of a run from files, or takes the shipped sample.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/spec.hpp"
#include "tools/common/session.hpp"
#include "tools/inputs/inputs.hpp"

namespace lacuna::tools {

/// q, k and v of a safetensors file, [batch, heads, tokens, head_dim]; errors are reported.
std::optional<Inputs> load_tensors(const std::string& path, std::optional<DType> dtype,
                                   Session& session);

/// Reads and checks all files, reporting everything that is wrong with them; what is wrong with
/// their shapes together is left to the launch. Parameters that are not assigned are taken from the
/// calibration, without one from the one file `<input>.<spec>-*.safetensors` beside the input, if
/// it has them.
std::optional<Inputs> load_inputs(const InputOptions& options, const VariantSpec& spec,
                                  Session& session);

/// The sample that comes with the project, "" if it cannot be found.
std::string shipped_sample();

/// The folder of its specs, likewise.
std::string shipped_specs();

}  // namespace lacuna::tools
