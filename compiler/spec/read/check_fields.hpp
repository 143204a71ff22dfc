// Checks a JSON tree against the field table: unknown keys, types, ranges, missing fields.
#pragma once

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/json/json_tree.hpp"

namespace lacuna {

/// Reports E0201 to E0204 and marks what is wrong as unusable. What stays usable has the type and
/// the range of its field.
void check_fields(const SourceText& source, JsonNode& root, Diagnostics& diagnostics);

}  // namespace lacuna
