// What the rules between fields look at, and how they report. Part of check_rules (rules.hpp).
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"
#include "compiler/spec/json/json_tree.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

struct RuleContext {
  const SourceText& source;
  const JsonNode& root;
  const VariantSpec& spec;
  Diagnostics& diagnostics;
  const JsonNode* step;  ///< what paths that begin with "predictor" are members of; null: none

  /// The usable value at a path ("tile.q"), nullptr if there is none.
  const JsonNode* at(std::string_view path) const;

  /// True if the spec says of these fields what the file says: each is absent or usable. A rule
  /// that reads several fields asks first, so that one mistake draws one error.
  bool sound(std::initializer_list<std::string_view> paths) const;

  Diagnostic& report(Code code, const JsonNode& node, std::string message) const;

  /// A contradiction (E0205) reported at the innermost value of `path` that is there; `why` is the
  /// reason of the rule, `help` the nearest legal thing.
  Diagnostic& conflict(std::string_view path, std::string message, std::string why,
                       std::string help) const;

  /// The same at the first place where the expression at `path` reads `variable`.
  Diagnostic& conflict_in(std::string_view path, const Expr& expr, Variable variable,
                          std::string message, std::string why, std::string help) const;
};

/// The predictor of a spec or a branch: its last step where it is a list of steps, the list itself
/// where that is empty. Null without a predictor.
const JsonNode* last_step(const JsonNode& node);

/// The first of these variables that the expression reads, nullptr if none.
const Variable* first_used(const Expr& expr, std::span<const Variable> variables);

/// The multiple of 16 nearest to `value` that divides `whole`, at most one on each side:
/// "64, 128".
std::string nearest_divisors(int whole, int value);

std::string quoted(const Summary& summary);
bool in_integers(const EstimateSpec& estimate);
/// Those of predictor.estimate (rules_estimate.cpp), which a predictor has.
void check_estimate(const RuleContext& context, const PredictorSpec& predictor);
/// Those of predictor.estimate.index (rules_index.cpp), which an estimate has.
void check_index(const RuleContext& context, const EstimateSpec& estimate);

/// The rules of predictor (rules_predictor.cpp) and of what it goes with: quantise, permute, mask,
/// loader and tile (rules_combination.cpp).
void check_predictor(const RuleContext& context);
void check_combination(const RuleContext& context);

/// Conditions that are the same everywhere, or compare rounded numbers
/// (spec/meant/rules_conditions.cpp).
void check_conditions(const RuleContext& context);

/// What a part of the formula at `path` does, where something else may be meant
/// (spec/meant/rules_slips.cpp).
void check_slips(const RuleContext& context, const char* path, const JsonNode& node,
                 const Expr& expr, const ExprNode& part);

/// Those of branches, which the spec has (branches/rules_branches.cpp).
void check_branches(const RuleContext& context);

/// Those of the names of let (rules_let.cpp), which the spec has.
void check_let(const RuleContext& context);

/// Those of params.NAME.calibrate; `label` is "params.NAME".
void check_calibrate(const RuleContext& context, const ParamSpec& param,
                     const JsonNode& declaration, const std::string& label);

}  // namespace lacuna
