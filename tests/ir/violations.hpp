// A rule of the verifier broken by one change of a sound program's text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/ir/programs.hpp"

namespace lacuna {

struct TextViolation {
  const char* name;
  const char* text;  ///< of a sound program
  const char *from, *to;
  std::string messages;
};

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return text;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from << " occurs twice";
  return text.replace(at, from.size(), to);
}

inline std::string verify_text(const std::string& text) {
  Diagnostics diagnostics;
  verify_program(must_parse(text), diagnostics);
  return messages(diagnostics);
}

// Words of rules that other broken rules often bring along.
inline const std::string kBiasRule =
    "what smoothing took from quantised operands comes back: row_bias is q projected onto the mean "
    "of k, column_bias k onto the mean of q, each where that mean was taken away\n";
inline const std::string kComparedRule =
    "estimate %p: q and k are summaries of the estimate's tiles or cells where means are compared, "
    "else the tensors, or their integers with scales where these have 8 or 4 bits; with from or an "
    "index there are none\n";
inline const std::string kEstimatedRule =
    "select %kept: p and score are those of an estimate of the same tiles, given where keep reads "
    "p, p_max, rank, mass_before or score\n";
inline const std::string kOneOrderRule =
    "program @predicted: with permute, all of q, k and v are permuted, nothing else reads them, "
    "and every result of attend is unpermuted, but those of a branch\n";
inline const std::string kQueriesAndKeysRule =
    "attend %o_ordered: q and k come from the inputs of these names: as they are, permuted, or "
    "both quantised with 8 bits in groups of attend's tiles\n";
inline const std::string kColumnsRule =
    "columns are the bits of a select whose tiles are attend's rows and keep_k keys, of which a "
    "tile takes a whole number\n";

}  // namespace lacuna
