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
  bool divides_tile;        ///< the count divides the tile; only powers of two are legal
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

/// Tokens of rows (or columns) of a summary: how many one stands for, and those from one to the
/// next. Of tiles of so many tokens.
struct RowTokens {
  int width = 1, step = 1;
};
RowTokens row_tokens(const Summary& summary, int tile);
/// Rows of one tile.
int rows_of_tile(const Summary& summary, int tile);
/// Are its rows tokens as they are, all of a tile or some?
bool are_tokens(SummaryKind kind);

/// "mean, mean(n), tokens, ... or stride(n)"
std::string all_forms();

/// "antidiagonal(n)"
std::string form_of(SummaryKind kind);

/// The inverse of name_of(const Summary&); nothing if the text is no legal summary.
std::optional<Summary> parse_summary(std::string_view text);

/// Which summaries of queries and of keys an estimate compares with each other.
bool are_compared(const Summary& q, const Summary& k);

/// A regular expression for the summaries of one side.
std::string summary_pattern(SummarySide side);

}  // namespace lacuna
