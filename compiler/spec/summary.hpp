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
  bool of_queries = true, of_keys = true;

  bool is_of(SummarySide side) const {
    return side == SummarySide::kQueries ? of_queries : of_keys;
  }
};

/// In the order of SummaryKind.
std::span<const SummaryInfo> all_summaries();
const SummaryInfo& info(SummaryKind kind);
/// Those of one side.
std::vector<SummaryInfo> summaries_of(SummarySide side);

/// The legal counts, ascending; empty if the kind has none.
std::vector<int> legal_counts(SummaryKind kind);

/// "antidiagonal(n)"
std::string form_of(SummaryKind kind);

/// The inverse of name_of(const Summary&); nothing if the text is no legal summary.
std::optional<Summary> parse_summary(std::string_view text);

/// Which summaries of queries and of keys an estimate compares with each other.
bool are_compared(const Summary& q, const Summary& k);

/// A regular expression for the summaries of one side.
std::string summary_pattern(SummarySide side);

}  // namespace lacuna
