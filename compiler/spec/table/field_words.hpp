// Values and expectations in the words of a message.
#pragma once

#include <string>
#include <vector>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {

/// What a field takes: "an integer, a list of them or "auto"".
std::string expectation(const SpecField& field);

/// The summaries of a field: "mean", "antidiagonal(n)".
std::vector<std::string> summary_forms(const SpecField& field);

/// A value as shown in a message: strings quoted, everything shortened.
std::string quoted_value(const SourceText& source, const JsonNode& node);

/// A list in words: "16, 32, 64".
std::string joined_integers(const std::vector<int>& values);

/// A list in words: mask, score.
std::string joined_keys(const std::vector<std::string>& keys);

/// A list in words: "q", "k".
template <class Names>
std::string joined_names(const Names& names) {
  std::string out;
  for (const std::string_view name : names)
    out.append(out.empty() ? "\"" : ", \"").append(name).append("\"");
  return out;
}

}  // namespace lacuna
