// An object of "permute": a grid of tokens, and the cubes that it may be cut into.
#pragma once

#include "compiler/spec/read/field_errors.hpp"

namespace lacuna {

/// `label`: the field as shown to the user.
void check_grid(JsonNode& node, const SpecField& field, const std::string& label,
                FieldErrors& errors);

}  // namespace lacuna
