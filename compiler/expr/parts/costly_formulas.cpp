#include "compiler/expr/parts/costly_formulas.hpp"

#include "compiler/expr/nodes/constant_divisors.hpp"
#include "compiler/expr/parts/element_parts.hpp"
#include "compiler/expr/parts/instruction_count.hpp"
#include "compiler/expr/parts/shared_parts.hpp"

namespace lacuna {
namespace {

constexpr Variable kOfScore[] = {Variable::kS, Variable::kK, Variable::kP, Variable::kScore,
                                 Variable::kMassBefore};
constexpr Variable kOfPair[] = {Variable::kQ, Variable::kK};

/// Shorter ones are compiled in a second or two as they are.
constexpr int kLongFormula = 100, kLongIndices = 100, kLongMask = 130;

}  // namespace

bool FormulaLengths::is_costly() const { return of_score >= kLongFormula; }
bool FormulaLengths::has_costly_indices() const { return of_indices >= kLongIndices; }

FormulaLengths formula_lengths(const ScoreParts& parts) {
  const SharedParts shared =
      shared_parts(parts.rest)
          .value_or(SharedParts{.of_distance = {}, .of_key = {}, .rest = parts.rest});
  const ElementParts elements = element_parts(shared.rest);
  FormulaLengths lengths;
  // Divisors that no key changes are prepared for a row.
  for (const Expr* part : {&parts.core, &elements.rest})
    if (!part->empty()) lengths.of_score += instruction_count(*part, kOfScore, true);
  for (const ElementPart& part : elements.parts)
    lengths.of_indices += instruction_count(part.element, kOfPair);
  for (const ElementPart& part : elements.parts)
    lengths.of_score *= part.line && part.line->along_k == 1 ? 3 : 2;
  return lengths;
}

int mask_length(const Expr& mask) {
  return mask.empty() ? 0
                      : instruction_count(mask, kOfPair, !constant_divisors(mask, kOfPair).empty());
}

bool mask_is_costly(const Expr& mask) { return mask_length(mask) >= kLongMask; }

}  // namespace lacuna
