// The way out of a value of the wrong JSON type, and of a shape that is none.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {

/// What to write in the place of `node`, whose type is not that of the field; "" if unknown.
std::string type_help(const SourceText& source, const JsonNode& node, const SpecField& field);

/// For a text that is no list of bands: the bands that hold those it means, else examples.
std::string bands_help(std::string_view text);

/// Adds the legal shape whose dimensions are nearest to those of `text`, if each has one.
void shape_help(std::string_view text, Diagnostic& diagnostic);

}  // namespace lacuna
