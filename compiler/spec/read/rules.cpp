#include "compiler/spec/read/rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

constexpr int kRowsOfWarp = 16;  ///< of one mma

const JsonNode* usable_member(const JsonNode& object, std::string_view key) {
  const JsonNode* member = object.find(key);
  return member != nullptr && member->usable ? member : nullptr;
}

class RuleChecker {
 public:
  explicit RuleChecker(const RuleContext& context)
      : context_(context),
        source_(context.source),
        root_(context.root),
        spec_(context.spec),
        diagnostics_(context.diagnostics) {}

  /// Of a spec, or of one of its branches; parameters are the spec's.
  void check() {
    if (spec_.branch.count == 0) {
      for (const ParamSpec& param : spec_.params) check_param(param);
      check_let(context_);
    }
    check_tile();
    if (spec_.gate) check_gate(*spec_.gate);
    check_predictor(context_);
    check_combination(context_);
    if (!spec_.branches.empty()) check_branches(context_);
  }

  /// Conditions that are legal, but hardly meant.
  void check_slips() const { check_conditions(context_); }

  void check_unused() {
    std::vector<const Expr*> expressions = expressions_of(spec_);
    for (const VariantSpec& branch : spec_.branches)
      for (const Expr* expr : expressions_of(branch)) expressions.push_back(expr);
    for (const LetSymbol& symbol : spec_.let) expressions.push_back(&symbol.expr);
    for (std::size_t i = 0; i < spec_.params.size(); ++i) {
      const bool used = std::any_of(expressions.begin(), expressions.end(), [&](const Expr* expr) {
        return !expr->empty() && uses_parameter(*expr, static_cast<int>(i));
      });
      if (used) continue;
      const std::string& name = spec_.params[i].symbol.name;
      const JsonNode& node = *root_.find("params")->find(name);
      Diagnostic& d =
          report(Code::kUnusedParam, node, "params." + name + " is not read by any expression");
      d.severity = Severity::kWarning;
      d.span = node.key_span;
    }
  }

 private:
  Diagnostic& report(Code code, const JsonNode& node, std::string message) {
    return context_.report(code, node, std::move(message));
  }

  void check_param(const ParamSpec& param) {
    const JsonNode& node = *root_.find("params")->find(param.symbol.name);
    const std::string label = "params." + param.symbol.name;
    if (is_reserved(param.symbol.name)) {
      Diagnostic& d =
          report(Code::kConflict, node,
                 label + ": \"" + param.symbol.name + "\" already means something in expressions");
      d.span = node.key_span;
      d.helps.push_back("such as \"" + param.symbol.name + "_value\"");
    }
    const JsonNode* range = usable_member(node, "range");
    const JsonNode* fallback = usable_member(node, "default");
    if (range != nullptr) check_range(param, *range, label);
    if (fallback != nullptr) check_default(param, *fallback, range, label);
    check_monotone(param, node, label);
    check_calibrate(context_, param, node, label);
  }

  /// An i32 parameter takes whole numbers of 32 bits.
  bool check_whole(const ParamSpec& param, const JsonNode& node, double value,
                   const std::string& label) {
    if (param.symbol.type != ExprType::kI32) return true;
    using Limits = std::numeric_limits<std::int32_t>;
    const bool whole =
        std::nearbyint(value) == value && value >= Limits::min() && value <= Limits::max();
    if (whole) return true;
    Diagnostic& d = report(Code::kOutOfRange, node,
                           label + " = " + quoted_value(source_, node) + " is not an i32");
    d.notes.push_back("params." + param.symbol.name + " is of type i32");
    const bool is_beyond = value < Limits::min() || value > Limits::max();
    d.helps.push_back(is_beyond ? "nearest legal value: " +
                                      std::to_string(value < 0 ? Limits::min() : Limits::max())
                                : "a whole number, or \"type\": \"f32\"");
    return false;
  }

  void check_range(const ParamSpec& param, const JsonNode& node, const std::string& label) {
    const double bounds[] = {param.minimum, param.maximum};
    for (std::size_t i = 0; i < 2; ++i)
      if (!std::isinf(bounds[i]))
        check_whole(param, node.children[i], bounds[i],
                    label + ".range[" + std::to_string(i) + "]");
    if (param.minimum > param.maximum)
      report(Code::kConflict, node,
             label + ".range: the least value " + quoted_value(source_, node.children[0]) +
                 " is above the greatest " + quoted_value(source_, node.children[1]));
  }

  /// `range` may be absent: of a parameter declared twice, the values may come from the other one.
  void check_default(const ParamSpec& param, const JsonNode& node, const JsonNode* range,
                     const std::string& label) {
    if (!check_whole(param, node, param.default_value, label + ".default")) return;
    const bool above = param.default_value > param.maximum;
    const bool below = param.default_value < param.minimum;
    if ((!above && !below) || param.minimum > param.maximum || range == nullptr) return;
    const std::string least = quoted_value(source_, range->children[0]);
    const std::string greatest = quoted_value(source_, range->children[1]);
    Diagnostic& d = report(Code::kOutOfRange, node,
                           label + ".default = " + quoted_value(source_, node) +
                               " is not in its range, " + least + " to " + greatest);
    d.notes.push_back("the range is in line " + std::to_string(range->span.line));
    d.helps.push_back("nearest legal value: " + (above ? greatest : least));
  }

  void check_monotone(const ParamSpec& param, const JsonNode& node, const std::string& label) {
    const JsonNode* monotone = usable_member(node, "monotone");
    const std::vector<ParamDim>& shape = param.symbol.shape;
    const bool ordered = !shape.empty() && shape.back().axis != ParamAxis::kBatch &&
                         shape.back().axis != ParamAxis::kHeads;
    const bool shape_known =
        node.find("shape") == nullptr || usable_member(node, "shape") != nullptr;
    if (!param.symbol.monotone || monotone == nullptr || ordered || !shape_known) return;
    Diagnostic& d = report(Code::kConflict, *monotone,
                           label +
                               ".monotone needs a shape whose last dimension is one of tokens "
                               "or tiles");
    d.notes.emplace_back("it promises that values never fall along that dimension");
    d.helps.emplace_back("a shape such as \"[n_q]\", or leave monotone out");
  }

  /// A list is legal if one of its points is: the tuner drops the others.
  void check_tile() {
    const JsonNode* q_node = context_.at("tile.q");
    const JsonNode* warps_node = context_.at("tile.warps");
    const std::vector<int>& q = spec_.tile.q.values;
    const std::vector<int>& warps = spec_.tile.warps.values;
    if (q_node == nullptr || warps_node == nullptr || q.empty() || warps.empty()) return;
    for (const int w : warps)
      if (std::find(q.begin(), q.end(), kRowsOfWarp * w) != q.end()) return;
    const JsonNode& later = q_node->begin < warps_node->begin ? *warps_node : *q_node;
    Diagnostic& d = report(Code::kConflict, later,
                           "tile.q = " + joined_integers(q) +
                               " does not go with tile.warps = " + joined_integers(warps));
    d.notes.emplace_back("each warp owns the 16 query rows of one mma: tile.q = 16 * tile.warps");
    std::vector<int> legal_q, legal_warps;
    for (const int w : warps) legal_q.push_back(kRowsOfWarp * w);
    for (const int rows : q) legal_warps.push_back(rows / kRowsOfWarp);
    d.helps.push_back("nearest legal values: tile.q = " + joined_integers(legal_q) +
                      ", or tile.warps = " + joined_integers(legal_warps));
  }

  void check_gate(const GateSpec& gate) {
    const JsonNode* skips = context_.at("gate.skips");
    if (skips == nullptr) return;
    if (gate.skips_exp && !gate.skips_pv)
      conflict(*skips, "gate.skips: \"exp\" needs \"pv\"",
               "without its exponentials a tile has nothing to multiply with V");
    if (gate.skips_v_load && !gate.skips_pv)
      conflict(*skips, "gate.skips: \"v_load\" needs \"pv\"",
               "the product cannot use a V tile that is not loaded");
    if (gate.skips_v_load && gate.scope == GateScope::kWarp && context_.at("gate.scope")) {
      conflict(*skips, "gate.skips: \"v_load\" needs gate.scope \"tile\"",
               "the warps of a tile share one copy of V, so one warp alone cannot leave it out");
      diagnostics_.items.back().helps = {"\"scope\": \"tile\", or leave \"v_load\" out"};
    }
  }

  void conflict(const JsonNode& skips, std::string message, std::string why) {
    Diagnostic& d = report(Code::kConflict, skips, std::move(message));
    d.notes.push_back(std::move(why));
    d.helps.emplace_back(
        "legal: [\"pv\"], [\"exp\", \"pv\"], [\"v_load\", \"pv\"], [\"v_load\", \"exp\", \"pv\"]");
  }

  static std::vector<const Expr*> expressions_of(const VariantSpec& spec) {
    std::vector<const Expr*> expressions = {&spec.attention.mask, &spec.attention.score,
                                            &spec.attention.sink, &spec.branch.weight};
    if (spec.gate) expressions.insert(expressions.end(), {&spec.gate->skip, &spec.gate->exempt});
    for (const PredictorSpec* step : spec.steps()) {
      expressions.push_back(&step->keep);
      if (const auto& estimate = step->estimate)
        expressions.insert(expressions.end(),
                           {&estimate->from, &estimate->reference, &estimate->exclude});
      if (step->estimate && step->estimate->index) {
        const IndexSpec& index = *step->estimate->index;
        expressions.insert(expressions.end(), {&index.q, &index.k, &index.weight});
      }
    }
    return expressions;
  }

  const RuleContext& context_;
  const SourceText& source_;
  const JsonNode& root_;
  const VariantSpec& spec_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_rules(const SourceText& source, const JsonNode& root, const VariantSpec& spec,
                 Diagnostics& diagnostics) {
  const auto with_context = [&](const JsonNode& node, const VariantSpec& of_node, auto&& use) {
    const RuleContext context{source, node, of_node, diagnostics, last_step(node)};
    use(RuleChecker(context));
  };
  for (std::size_t n = 0; n < spec.branches.size(); ++n)
    with_context(root.find("branches")->children[n], spec.branches[n],
                 [](RuleChecker checker) { checker.check(); });
  with_context(root, spec, [&](RuleChecker checker) {
    checker.check();
    // An expression that does not parse may be the one that reads the parameter.
    if (!diagnostics.has_errors()) checker.check_unused();
  });
  if (diagnostics.has_errors()) return;
  const auto conditions = [](const RuleChecker& checker) { checker.check_slips(); };
  for (std::size_t n = 0; n < spec.branches.size(); ++n)
    with_context(root.find("branches")->children[n], spec.branches[n], conditions);
  with_context(root, spec, conditions);
}

}  // namespace lacuna
