// Rules within predictor: what keep may read, which summaries compare, what normalises.
#include <algorithm>
#include <array>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/parse.hpp"
#include "compiler/spec/field_words.hpp"
#include "compiler/spec/rule_context.hpp"
#include "compiler/spec/summary.hpp"

namespace lacuna {
namespace {

constexpr std::array kOfEstimates{Variable::kScore, Variable::kP, Variable::kRank,
                                  Variable::kMassBefore};
constexpr int kLeastTile = 16;      ///< below: columns
constexpr int kKeysOfThreads = 32;  ///< that the groups of four threads share

std::string quoted(const Summary& summary) { return "\"" + name_of(summary) + "\""; }

bool has_mean(const EstimateSpec& estimate) {
  return estimate.q.kind == SummaryKind::kMean || estimate.k.kind == SummaryKind::kMean;
}

bool has_mean_keys(const EstimateSpec& estimate) {
  return estimate.k.kind == SummaryKind::kMean || estimate.k.kind == SummaryKind::kCellMean;
}

bool in_integers(const EstimateSpec& estimate) { return estimate.bits == 8 || estimate.bits == 4; }

/// What queries of this kind can be compared with.
std::string keys_for(const Summary& queries) {
  switch (queries.kind) {
    case SummaryKind::kMean:
      return "\"mean\", \"tokens\"";
    case SummaryKind::kCellMean:
      return "\"mean(n)\"";
    case SummaryKind::kAntidiagonal:
      return quoted(queries);
    default:
      return "\"tokens\"";
  }
}

bool compare(const Summary& q, const Summary& k) {
  if (q.kind == SummaryKind::kAntidiagonal) return q == k;
  if (q.kind == SummaryKind::kCellMean) return k.kind == SummaryKind::kCellMean;
  return k.kind == SummaryKind::kTokens ||
         (k.kind == SummaryKind::kMean && q.kind == SummaryKind::kMean);
}

class PredictorRules {
 public:
  PredictorRules(const RuleContext& context, const PredictorSpec& predictor)
      : context_(context), predictor_(predictor) {}

  void check() {
    if (predictor_.estimate) {
      check_estimate(*predictor_.estimate);
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
                         "score, p, rank and mass_before come from an estimate of each tile",
                         "add \"estimate\": { \"q\": \"mean\", \"k\": \"mean\" }, or decide from "
                         "places, similarity and `visible`");
  }

  void check_estimate(const EstimateSpec& estimate) {
    if (!context_.sound({"predictor.estimate.q", "predictor.estimate.k", "predictor.tile.q",
                         "predictor.tile.k"}))
      return;
    if (!compare(estimate.q, estimate.k)) {
      context_.conflict("predictor.estimate.k",
                        "predictor.estimate: q " + quoted(estimate.q) + " does not go with k " +
                            quoted(estimate.k),
                        "means of tiles are compared with means of tiles or tokens, tokens with "
                        "tokens, means of cells with means of cells, antidiagonals with those of "
                        "the same size",
                        "legal with q " + quoted(estimate.q) + ": k " + keys_for(estimate.q));
      return;
    }
    if (has_cells(estimate.q)) {
      check_cells(estimate.q, "predictor.tile.q", predictor_.tile_q);
      check_cells(estimate.k, "predictor.tile.k", predictor_.tile_k);
    }
    if (context_.sound({"predictor.estimate.bits"})) check_bits(estimate);
    if (context_.sound({"predictor.estimate.normalise"})) check_normalise(estimate);
    if (context_.at("predictor.estimate.exclude") != nullptr) check_exclude(estimate);
  }

  /// A cell lies in one tile. The largest legal cell is the nearest one.
  void check_cells(const Summary& cells, const char* path, int tile) {
    if (tile % cells.count == 0) return;
    const std::string count = std::to_string(cells.count);
    const bool are_same = cells.kind == SummaryKind::kAntidiagonal;
    std::string help = std::string(path) + " a multiple of " + count;
    Summary nearest = cells;
    for (const int legal : legal_counts(cells.kind)) {
      const bool fits =
          !are_same || (predictor_.tile_q % legal == 0 && predictor_.tile_k % legal == 0);
      if (tile % legal == 0 && fits) nearest.count = legal;
    }
    if (nearest.count != cells.count) help = quoted(nearest) + ", or " + help;
    context_.conflict(path,
                      std::string(path) + " = " + std::to_string(tile) +
                          " is not a multiple of the " + count + " tokens of a cell of " +
                          quoted(cells),
                      "a cell lies in one tile", help);
  }

  void check_bits(const EstimateSpec& estimate) {
    const std::string bits = "predictor.estimate.bits = " + std::to_string(estimate.bits);
    const bool tokens =
        estimate.q.kind == SummaryKind::kTokens && estimate.k.kind == SummaryKind::kTokens;
    if (in_integers(estimate) && !tokens) {
      context_.conflict("predictor.estimate.bits",
                        bits + " needs \"tokens\" on both sides, not q " + quoted(estimate.q) +
                            " and k " + quoted(estimate.k),
                        "integers are made of tokens; the mean of a tile is compared in f32, cells "
                        "and last queries in the element type of the tensors",
                        "\"q\": \"tokens\", \"k\": \"tokens\"; or leave bits out");
    } else if (estimate.bits == 16 && has_mean(estimate)) {
      context_.conflict("predictor.estimate.bits", bits + " does not go with a mean",
                        "the mean of a tile is compared in f32", "32, or leave bits out");
    } else if (estimate.bits == 32 && !has_mean(estimate)) {
      context_.conflict("predictor.estimate.bits", bits + " needs a mean",
                        "tokens and cells are compared in the element type of the tensors",
                        "16, or leave bits out");
    }
    if (!context_.sound({"predictor.estimate.group"})) return;
    if (!in_integers(estimate) && context_.at("predictor.estimate.group") != nullptr)
      context_.conflict("predictor.estimate.group", "predictor.estimate.group needs bits 8 or 4",
                        "a group shares a scale, which only integers have",
                        "\"bits\": 4, or leave group out");
    if (in_integers(estimate) && estimate.group == QuantGroup::kThread &&
        predictor_.tile_k > kKeysOfThreads && predictor_.tile_k % kKeysOfThreads != 0)
      context_.conflict("predictor.tile.k",
                        "predictor.tile.k = " + std::to_string(predictor_.tile_k) +
                            " does not go with estimate.group \"thread\"",
                        "the keys of a thread's group are 8 of 32",
                        "a multiple of 32, or \"group\": \"warp\"");
  }

  void check_normalise(const EstimateSpec& estimate) {
    const bool per_query = has_exact_lse(estimate.normalise);
    if (context_.at("predictor.estimate.reference") != nullptr &&
        estimate.normalise != Normalise::kLse)
      context_.conflict("predictor.estimate.reference",
                        "predictor.estimate.reference needs normalise \"lse\", not \"" +
                            std::string(name_of(estimate.normalise)) + "\"",
                        "it chooses the keys whose exact log-sum-exp normalises",
                        "leave normalise or reference out");
    if (per_query && estimate.q.kind != SummaryKind::kTokens)
      context_.conflict("predictor.estimate.normalise",
                        "predictor.estimate.normalise = \"" +
                            std::string(name_of(estimate.normalise)) +
                            "\" needs q \"tokens\", not " + quoted(estimate.q),
                        "a log-sum-exp is one number for each query token",
                        "\"q\": \"tokens\", or \"normalise\": \"softmax\"");
    if (estimate.normalise == Normalise::kNone && uses(predictor_.keep, Variable::kMassBefore))
      context_.conflict_in("predictor.keep", predictor_.keep, Variable::kMassBefore,
                           "predictor.keep: 'mass_before' needs a normalised estimate, and "
                           "predictor.estimate.normalise is \"none\"",
                           "top-p with no normalisation: mass_before sums probabilities, and plain "
                           "logits are none",
                           "\"normalise\": \"softmax\", or compare `rank`");
    if (estimate.normalise == Normalise::kRowMax && estimate.reduce == Reduce::kSum &&
        context_.sound({"predictor.estimate.reduce"}))
      context_.conflict(
          "predictor.estimate.normalise",
          "predictor.estimate.normalise = \"row_max\" does not go with reduce \"sum\"",
          "p is 1 at the row's largest logit, and the p of a tile the largest of its "
          "pairs",
          "\"reduce\": \"max\", or \"normalise\": \"softmax\"");
    if (per_query && context_.at("predictor.estimate.temperature") != nullptr)
      context_.conflict("predictor.estimate.temperature",
                        "predictor.estimate.temperature does not go with normalise \"" +
                            std::string(name_of(estimate.normalise)) + "\"",
                        "the log-sum-exp is that of logits without a temperature",
                        "leave it out, or \"normalise\": \"softmax\"");
    if (estimate.normalise == Normalise::kPreviousLse &&
        context_.spec.permute.order != TokenOrder::kNone)
      context_.conflict("predictor.estimate.normalise",
                        "predictor.estimate.normalise = \"previous_lse\" does not go with permute",
                        "the log-sum-exp of the previous call is in the caller's order of tokens",
                        "\"lse\" or \"softmax\"");
  }

  void check_exclude(const EstimateSpec& estimate) {
    if (estimate.q.kind == SummaryKind::kMean && estimate.k.kind == SummaryKind::kMean) return;
    context_.conflict("predictor.estimate.exclude",
                      "predictor.estimate.exclude needs \"mean\" on both sides, not q " +
                          quoted(estimate.q) + " and k " + quoted(estimate.k),
                      "it takes whole tiles out of the normalisation, which runs over tiles only "
                      "if each is one mean",
                      "leave it out; predictor.keep can decide by tile");
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
    const bool known = context_.sound({"predictor.estimate.q", "predictor.estimate.k"});
    if (known && has_mean_keys(*predictor_.estimate))
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
                    "predictor.keep reads none of score, p, rank and mass_before",
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
    const bool in_keep = uses_parameter(predictor_.keep, index);
    if (!in_keep && !(estimate && uses_parameter(estimate->exclude, index))) return;
    const char* reader = in_keep ? "predictor.keep" : "predictor.estimate.exclude";
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
    context_.conflict("params." + param.symbol.name + ".shape",
                      "params." + param.symbol.name + ": " + reader + " reads " + side +
                          "_tiles of it, but predictor." + tile + " = " +
                          std::to_string(predicted) +
                          (written.empty() ? " makes columns"
                                           : " and " + tile + " = " + joined_integers(written)),
                      "a parameter by tile has an element for each tile of the kernel, so the "
                      "predictor's tiles must be the same",
                      predicted >= kLeastTile ? tile + " = " + std::to_string(predicted)
                                              : "another shape, such as \"[heads]\"");
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
