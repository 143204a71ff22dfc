// Rules within predictor but for its estimates (rules_estimate.cpp): what keep may read, columns,
// what is there for nothing, steps.
#include <algorithm>
#include <array>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

constexpr std::array kOfEstimates{Variable::kScore, Variable::kP, Variable::kRank,
                                  Variable::kMassBefore, Variable::kPMax};
constexpr int kLeastTile = 16;  ///< below: columns

bool has_mean_keys(const EstimateSpec& estimate) {
  return estimate.from.empty() &&
         (estimate.k.kind == SummaryKind::kMean || estimate.k.kind == SummaryKind::kCellMean);
}

/// Are the keys of a tile one vector, or one for each of several cells?
bool has_summarised_keys(const EstimateSpec& estimate) {
  return has_mean_keys(estimate) ||
         (estimate.from.empty() && estimate.k.kind == SummaryKind::kMinMax);
}

class PredictorRules {
 public:
  PredictorRules(const RuleContext& context, const PredictorSpec& predictor)
      : context_(context), predictor_(predictor) {}

  void check() {
    if (predictor_.estimate) {
      check_estimate(context_, predictor_);
    } else if (context_.step->find("estimate") == nullptr) {
      check_no_estimate();
    }
    if (context_.sound({"predictor.tile.k"}) && predictor_.tile_k < kLeastTile) check_columns();
    if (context_.diagnostics.has_errors()) return;
    check_idle_fields();
    for (const ParamSpec& param : context_.spec.params) check_tile_param(param);
  }

 private:
  void check_no_estimate() {
    const Variable* read = first_used(predictor_.keep, kOfEstimates);
    if (read == nullptr) return;
    context_.conflict_in("predictor.keep", predictor_.keep, *read,
                         "predictor.keep: '" + std::string(info(*read).name) +
                             "' needs predictor.estimate, and there is none",
                         "score, p, p_max, rank and mass_before come from an estimate of each tile",
                         "add \"estimate\": { \"q\": \"mean\", \"k\": \"mean\" }, or decide from "
                         "places, similarity and `visible`");
  }

  /// Columns hold too few keys for what looks at a tile as a whole.
  void check_columns() {
    const std::string but = ", but predictor.tile.k is " + std::to_string(predictor_.tile_k);
    const auto read = [&](std::string_view path, const Expr& expr) {
      if (uses(expr, Variable::kSimilarK))
        context_.conflict_in(path, expr, Variable::kSimilarK,
                             std::string(path) + ": 'similar_k' needs tiles of many keys" + but,
                             "self-similarity compares the tokens of a tile with each other",
                             "predictor.tile.k of 16 or more");
    };
    read("predictor.keep", predictor_.keep);
    if (!predictor_.estimate) return;
    read("predictor.estimate.exclude", predictor_.estimate->exclude);
    const bool known = context_.sound({"predictor.estimate.q", "predictor.estimate.k"}) &&
                       context_.at("predictor.estimate.from") == nullptr;
    if (known && has_summarised_keys(*predictor_.estimate))
      context_.conflict("predictor.estimate.k",
                        "predictor.estimate.k: " + quoted(predictor_.estimate->k) +
                            " needs tiles of many keys" + but,
                        "a column is its own summary",
                        "\"k\": \"tokens\", or predictor.tile.k of 16 or more");
  }

  /// Every field that is given must matter.
  void check_idle_fields() {
    const auto& estimate = predictor_.estimate;
    const auto reads = [&](Variable variable) {
      return uses(predictor_.keep, variable) || (estimate && uses(estimate->exclude, variable));
    };
    const bool similar_q = reads(Variable::kSimilarQ), similar_k = reads(Variable::kSimilarK);
    if (context_.at("predictor.similarity") != nullptr && !similar_q && !similar_k)
      context_.conflict("predictor.similarity",
                        "predictor.similarity: no expression reads similar_q or similar_k",
                        "it is the form of these two", "leave it out");
    const bool integers =
        context_.spec.quantise.qk_bits == 8 || (estimate && in_integers(*estimate));
    const bool mean_keys = estimate && has_mean_keys(*estimate);
    if (predictor_.smooth_q && !similar_q && !integers) idle_smooth("q");
    if (predictor_.smooth_k && !similar_k && !integers && !mean_keys) idle_smooth("k");
    if (estimate && first_used(predictor_.keep, kOfEstimates) == nullptr)
      context_
          .conflict("predictor.estimate", "predictor.estimate is made for nothing",
                    "predictor.keep reads none of score, p, p_max, rank and mass_before",
                    "leave it out, or read it in predictor.keep")
          .severity = Severity::kWarning;
  }

  void idle_smooth(const std::string& side) {
    context_.conflict("predictor.smooth", "predictor.smooth: nothing reads " + side + " smoothed",
                      "smoothing serves self-similarities, integers and means of keys; the tokens "
                      "themselves stay as they are",
                      "leave \"" + side + "\" out");
  }

  /// A parameter with an element for each tile means the tiles of the kernel.
  void check_tile_param(const ParamSpec& param) {
    const auto index = static_cast<int>(&param - context_.spec.params.data());
    const auto& estimate = predictor_.estimate;
    const auto reads = [&](const Expr& expr) { return uses_parameter(expr, index); };
    const char* reader = reads(predictor_.keep)                 ? "predictor.keep"
                         : estimate && reads(estimate->exclude) ? "predictor.estimate.exclude"
                         : estimate && reads(estimate->from)    ? "predictor.estimate.from"
                                                                : nullptr;
    if (reader == nullptr) return;
    for (const ParamDim& dim : param.symbol.shape) {
      if (dim.axis == ParamAxis::kQTiles)
        check_tile_dim(param, reader, "q", predictor_.tile_q, context_.spec.tile.q.values);
      if (dim.axis == ParamAxis::kKTiles)
        check_tile_dim(param, reader, "k", predictor_.tile_k, context_.spec.tile.k.values);
    }
  }

  void check_tile_dim(const ParamSpec& param, const std::string& reader, const std::string& side,
                      int predicted, const std::vector<int>& written) {
    const bool same = std::find(written.begin(), written.end(), predicted) != written.end();
    if (same || (written.empty() && predicted >= kLeastTile)) return;
    const std::string tile = "tile." + side;
    context_.conflict(
        "params." + param.symbol.name + ".shape",
        "params." + param.symbol.name + ": " + reader + " reads " + side +
            "_tiles of it, but predictor." + tile + " = " + std::to_string(predicted) +
            (written.empty() ? " makes columns"
                             : " and " + tile + " = " + joined_integers(written)),
        "a parameter by tile has an element for each tile of the kernel, so the "
        "predictor's tiles must be the same",
        predicted >= kLeastTile
            ? tile + " = " + std::to_string(predicted)
            : "\"[heads, n_k]\", an element for each key, read as " + param.symbol.name + "[k0]");
  }

  const RuleContext& context_;
  const PredictorSpec& predictor_;
};

/// What a step has to say of the one before it, and what only the last may say.
void check_step(const RuleContext& context, const PredictorSpec& step, std::size_t number,
                const PredictorSpec& last) {
  const char* given = step.within ? "predictor.within" : "predictor.union";
  if (number == 0 && (step.within || step.joins))
    context.conflict(given, std::string(given) + ": there is no step before",
                     "it says what a later step does with the tiles that the one before kept",
                     "leave it out, or make predictor a list of two steps");
  if (number > 0 && step.within == step.joins)
    context.conflict(step.within ? "predictor.union" : "predictor",
                     step.within ? "predictor.union does not go with predictor.within"
                                 : "predictor: the second step does not say what becomes of the "
                                   "tiles that the first kept",
                     "a later step looks within these tiles, or keeps them, too",
                     "\"within\": true, or \"union\": true");
  if (step.within && step.estimate && step.estimate->q.kind == SummaryKind::kLast)
    context.conflict(
        "predictor.within", "predictor.within does not go with q " + quoted(step.estimate->q),
        "the last queries serve all query tiles alike, which the step before tells apart",
        "\"union\": true, or other queries");
  if (&step == &last) return;
  if (step.tile_q != last.tile_q || step.tile_k != last.tile_k)
    context.conflict("predictor.tile",
                     "predictor.tile: steps of " + std::to_string(step.tile_q) + " x " +
                         std::to_string(step.tile_k) + " and of " + std::to_string(last.tile_q) +
                         " x " + std::to_string(last.tile_k),
                     "a step keeps tiles, or leaves them out, for the step after it",
                     "the same tiles");
  for (const char* path : {"predictor.reuse", "predictor.heads"})
    if (context.at(path) != nullptr)
      context.conflict(path, std::string(path) + " belongs to the last step",
                       "it is about what the predictor keeps in the end", "write it there");
}

}  // namespace

void check_predictor(const RuleContext& context) {
  const std::vector<const PredictorSpec*> steps = context.spec.steps();
  if (steps.empty()) return;
  const JsonNode& predictor = *context.root.find("predictor");
  for (std::size_t n = 0; n < steps.size(); ++n) {
    RuleContext of_step = context;
    if (predictor.is(JsonNode::Kind::kArray)) of_step.step = &predictor.children[n];
    PredictorRules(of_step, *steps[n]).check();
    check_step(of_step, *steps[n], n, *steps.back());
  }
}

}  // namespace lacuna
