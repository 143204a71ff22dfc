// Summaries as text: "mean", "tokens", "antidiagonal(8)", "last(64)". The table of their names and
// counts, from which reader, schema, reference and printers follow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/spec.hpp"

namespace lacuna {

struct SummaryInfo {
  SummaryKind kind;
  std::string_view name;
  int first, last;          ///< legal counts, inclusive; 0: has no count
  bool powers_of_two;       ///< only those of the counts
  std::string_view counts;  ///< the legal ones in words
};

/// In the order of SummaryKind.
std::span<const SummaryInfo> all_summaries();
const SummaryInfo& info(SummaryKind kind);

/// The legal counts, ascending; empty if the kind has none.
std::vector<int> legal_counts(SummaryKind kind);

/// "antidiagonal(n)"
std::string form_of(SummaryKind kind);

/// The inverse of name_of(const Summary&); nothing if the text is no legal summary.
std::optional<Summary> parse_summary(std::string_view text);

/// A regular expression for the first `kinds` kinds.
std::string summary_pattern(std::size_t kinds);

}  // namespace lacuna
