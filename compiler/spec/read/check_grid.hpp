// Checks "permute" where it is an object, which names a grid of tokens and may cut it into cubes.
#pragma once

#include "compiler/spec/read/field_errors.hpp"

namespace lacuna {

/// `label`: the field as shown to the user.
void check_grid(JsonNode& node, const SpecField& field, const std::string& label,
                FieldErrors& errors);

/// What a list that names a grid is written as, or "".
std::string grid_help(const JsonNode& node, const SpecField& field);

}  // namespace lacuna
