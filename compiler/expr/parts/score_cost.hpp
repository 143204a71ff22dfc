// What a score formula leaves for each score, once a row has what stays the same along it
// (score_parts.hpp): the plan shows it.
#pragma once

#include <string>

#include "compiler/expr/parts/operation_count.hpp"
#include "compiler/expr/parts/score_parts.hpp"

namespace lacuna {

/// What each score takes, and each distance and key of a warp's.
struct ScoreCosts {
  ScoreCost of_score, of_distance, of_key;
};

/// The last multiply-add, score * factor + more, is among them. A table read along a line
/// (table_line.hpp) is one load. `shares`: a warp works out once what its scores share
/// (shared_parts.hpp).
ScoreCosts score_costs(const ScoreParts& parts, bool shares = true);

/// "2 FFMA, 1 load for each score", and what each distance and key takes.
std::string print_score_costs(const ScoreCosts& costs);

/// What the operations are for: "factor * core + affine in k + rest", without what is absent.
std::string print_score_form(const ScoreParts& parts, bool shares = true);

}  // namespace lacuna
