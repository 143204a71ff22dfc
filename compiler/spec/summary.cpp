#include "compiler/spec/summary.hpp"

#include <array>

namespace lacuna {
namespace {

constexpr std::array kSummaries{
    SummaryInfo{SummaryKind::kMean, "mean", 0, 0, false, ""},
    SummaryInfo{SummaryKind::kCellMean, "mean", 2, 64, true, "2, 4, 8, 16, 32 or 64"},
    SummaryInfo{SummaryKind::kTokens, "tokens", 0, 0, false, ""},
    SummaryInfo{SummaryKind::kAntidiagonal, "antidiagonal", 2, 32, true, "2, 4, 8, 16 or 32"},
    SummaryInfo{SummaryKind::kLast, "last", 1, 256, false, "1 to 256", true, false},
    SummaryInfo{SummaryKind::kMinMax, "min_max", 0, 0, false, "", false, true},
    SummaryInfo{SummaryKind::kStride, "stride", 2, 128, true, "2, 4, 8, 16, 32, 64 or 128", true,
                false},
};

}  // namespace

std::span<const SummaryInfo> all_summaries() { return kSummaries; }

const SummaryInfo& info(SummaryKind kind) { return kSummaries[static_cast<std::size_t>(kind)]; }

std::vector<int> legal_counts(SummaryKind kind) {
  const SummaryInfo& row = info(kind);
  std::vector<int> counts;
  if (row.first == 0) return counts;
  for (int n = row.first; n <= row.last; n = row.divides_tile ? 2 * n : n + 1) counts.push_back(n);
  return counts;
}

RowTokens row_tokens(const Summary& summary, int tile) {
  switch (summary.kind) {
    case SummaryKind::kMean:
    case SummaryKind::kMinMax:
      return {tile, tile};
    case SummaryKind::kCellMean:
    case SummaryKind::kAntidiagonal:
      return {summary.count, summary.count};
    case SummaryKind::kStride:
      return {1, summary.count};
    case SummaryKind::kTokens:
    case SummaryKind::kLast:
      break;
  }
  return {};
}

int rows_of_tile(const Summary& summary, int tile) {
  return summary.kind == SummaryKind::kLast ? summary.count : tile / row_tokens(summary, tile).step;
}

bool are_tokens(SummaryKind kind) {
  return kind == SummaryKind::kTokens || kind == SummaryKind::kLast || kind == SummaryKind::kStride;
}

std::string all_forms() {
  std::string text;
  for (const SummaryInfo& row : kSummaries)
    text += (text.empty() ? "" : &row == &kSummaries.back() ? " or " : ", ") + form_of(row.kind);
  return text;
}

std::string form_of(SummaryKind kind) {
  return std::string(info(kind).name) + (info(kind).first == 0 ? "" : "(n)");
}

std::string name_of(const Summary& summary) {
  const SummaryInfo& row = info(summary.kind);
  return std::string(row.name) + (row.first == 0 ? "" : "(" + std::to_string(summary.count) + ")");
}

std::optional<Summary> parse_summary(std::string_view text) {
  for (const SummaryInfo& row : kSummaries) {
    if (row.first == 0 && text == row.name) return Summary{row.kind, 1};
    for (const int count : legal_counts(row.kind))
      if (name_of(Summary{row.kind, count}) == text) return Summary{row.kind, count};
  }
  return std::nullopt;
}

std::vector<SummaryInfo> summaries_of(SummarySide side) {
  std::vector<SummaryInfo> all;
  for (const SummaryInfo& row : kSummaries)
    if (row.is_of(side)) all.push_back(row);
  return all;
}

bool are_compared(const Summary& q, const Summary& k) {
  switch (q.kind) {
    case SummaryKind::kMean:
      return k.kind == SummaryKind::kMean || k.kind == SummaryKind::kMinMax ||
             k.kind == SummaryKind::kTokens;
    case SummaryKind::kCellMean:
      return k.kind == SummaryKind::kCellMean;
    case SummaryKind::kAntidiagonal:
      return k == q;
    case SummaryKind::kTokens:
    case SummaryKind::kLast:
    case SummaryKind::kStride:
      return k.kind == SummaryKind::kTokens;
    case SummaryKind::kMinMax:
      break;  // of keys
  }
  return false;
}

std::string summary_pattern(SummarySide side) {
  std::string out;
  for (const SummaryInfo& row : summaries_of(side)) {
    out.append(out.empty() ? "^(" : "|").append(row.name);
    std::string counts;
    for (const int count : legal_counts(row.kind))
      counts.append(counts.empty() ? "" : "|").append(std::to_string(count));
    if (!counts.empty()) out.append("\\((").append(counts).append(")\\)");
  }
  return out + ")$";
}

}  // namespace lacuna
