// Errors about a field of a spec, each with the place, the rule and what would be legal.
#pragma once

#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {

struct FieldErrors {
  const SourceText& source;
  Diagnostics& diagnostics;

  /// Any; the node is not read further.
  Diagnostic& report(Code code, JsonNode& node, std::string message);
  void wrong_type(JsonNode& node, const std::string& label, const std::string& expected);
  /// A value of the right type outside its range. `rule`: "is not ...".
  Diagnostic& illegal(JsonNode& node, const SpecField& field, const std::string& label,
                      const std::string& rule);
  void missing(const JsonNode& object, const SpecField& field, const std::string& label);
  /// `keys`: the legal ones. The one that was meant, or "".
  std::string unknown_key(JsonNode& node, const std::vector<std::string>& keys,
                          const std::string& label);

 private:
  static void add_elsewhere(const std::string& key, const std::string& label, Diagnostic& d);
};

}  // namespace lacuna
