#include "compiler/diag/diagnostic.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "compiler/diag/other_words.hpp"

namespace lacuna {

bool Diagnostics::has_errors() const {
  return std::any_of(items.begin(), items.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

std::string code_name(Code code) {
  std::string digits = std::to_string(static_cast<int>(code));
  return "E" + std::string(4 - std::min<std::size_t>(4, digits.size()), '0') + digits;
}

std::string_view code_summary(Code code) {
  switch (code) {
#define LACUNA_CODE(name, number, summary) \
  case Code::name:                         \
    return summary;
#include "compiler/diag/codes.def"
#undef LACUNA_CODE
    default:
      return "";
  }
}

Explanation explanation_of(Code code) {
  switch (code) {
#define LACUNA_EXPLANATION(name, cause, example, cure) \
  case Code::name:                                     \
    return {cause, example, cure};
#include "compiler/diag/explanations.def"
#undef LACUNA_EXPLANATION
  }
  return {};
}

std::string_view code_subject(Code code) {
  switch (static_cast<int>(code) / 100) {
#define LACUNA_CODE(name, number, summary)
#define LACUNA_CODE_GROUP(hundreds, subject) \
  case hundreds:                             \
    return subject;
#include "compiler/diag/codes.def"
#undef LACUNA_CODE
    default:
      return "";
  }
}

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Insertions, deletions, substitutions and swaps of neighbours, blind to case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// `nk` and `n_k`, `TileK` and `tile_k`.
bool differ_in_separators(std::string_view a, std::string_view b) {
  const auto letters = [](std::string_view text) {
    std::string kept;
    for (const char c : text) {
      if (c != '_' && c != '-') kept += lower(c);
    }
    return kept;
  };
  return letters(a) == letters(b);
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;  // longer ones are no typing mistakes
  if (word.size() > kLongestWord) return "";
  std::string best;
  std::size_t best_distance = word.size();  // replacing every letter is no similarity
  for (const std::string& candidate : candidates) {
    const std::size_t distance =
        differ_in_separators(word, candidate) ? 0 : edit_distance(word, candidate);
    const std::size_t tolerance = std::max<std::size_t>(1, word.size() / 3);
    if (distance <= tolerance && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  // A slip of one letter says more than what others call it, but not of a word that is hardly more.
  constexpr std::size_t kSlip = 1, kShortWord = 3;
  const bool is_slip = best_distance == 0 || (best_distance <= kSlip && word.size() > kShortWord);
  const std::string synonym = is_slip ? "" : synonym_among(word, candidates);
  if (!synonym.empty() || !best.empty()) return synonym.empty() ? best : synonym;
  // `gather_keys`: more was written than there is.
  const auto begins = [&](const std::string& candidate) {
    return candidate.size() > kShortWord && word.starts_with(candidate + "_");
  };
  const auto begun = std::find_if(candidates.begin(), candidates.end(), begins);
  if (begun != candidates.end()) return *begun;
  // `mass`: a word of it is left out.
  const auto goes_on = [&](const std::string& candidate) {
    return word.size() > kShortWord && candidate.starts_with(std::string(word) + "_");
  };
  const auto longer = std::find_if(candidates.begin(), candidates.end(), goes_on);
  return longer == candidates.end() ? "" : *longer;
}

}  // namespace lacuna
