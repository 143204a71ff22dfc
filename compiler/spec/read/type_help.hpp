// The way out of a value of the wrong JSON type, and of a text that is no shape, name or summary.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {

/// What to write in the place of `node`, whose type is not that of the field; "" if unknown.
std::string type_help(const SourceText& source, const JsonNode& node, const SpecField& field);

/// The same where an object is expected, with the legal `keys`: of a number, a list or a text the
/// object that it was meant for, where that is plain.
std::string object_help(const SourceText& source, const JsonNode& node, const std::string& path,
                        const std::vector<std::string>& keys);
/// For an object in the place of the list of branches.
std::string branches_help(const JsonNode& node);

/// How the value of a field is said here that has another word for it, or none; "" if unknown.
std::string value_said_otherwise(const SpecField& field, const std::string& text);

/// Adds the name that is nearest to a text that is none, if there is one.
void name_help(const std::string& text, Diagnostic& diagnostic);

/// The name of a parameter that is nearest to a text that is none, or "".
std::string nearest_param_name(std::string_view text);

/// Adds the counts that are nearest to that of `text`, "mean(12)".
void counts_help(const std::string& text, const SummaryInfo& row, Diagnostic& diagnostic);

/// For a text that is no list of bands: the bands that hold those it means, else examples.
std::string bands_help(std::string_view text);

/// Adds the legal shape whose dimensions are nearest to those of `text`, if each has one.
void shape_help(std::string_view text, Diagnostic& diagnostic);

}  // namespace lacuna
