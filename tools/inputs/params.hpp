// The parameters of a run: assignments on the command line, and the file that lies beside a sample.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/spec/spec.hpp"
#include "tools/common/session.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/io/safetensors.hpp"

namespace lacuna::tools {

/// Reads `assignments` ("name=0.5", "name=@file"), then takes parameters that have none from the
/// companion file of `input` (may be empty). All errors are reported.
std::optional<std::vector<ParamInput>> load_params(const std::vector<std::string>& assignments,
                                                   const std::string& input,
                                                   const VariantSpec& spec, Session& session);

/// "tensor q is missing; the file has k, v"
Diagnostic missing_tensor(const std::string& name, const Safetensors& file);

}  // namespace lacuna::tools
