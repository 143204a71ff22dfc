// Rules between fields: what the field table cannot say of one field alone.
#pragma once

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

/// Reports contradictions (E0205), values outside a declared range (E0203) and, where the spec has
/// no other error, warnings: parameters that nothing reads (E0206), conditions that always hold or
/// never (E0207), or where it matters least (E0208), comparisons of rounded numbers (E0308).
void check_rules(const SourceText& source, const JsonNode& root, const VariantSpec& spec,
                 Diagnostics& diagnostics);

}  // namespace lacuna
