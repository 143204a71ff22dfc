// Rules within predictor.estimate: which summaries are compared, in which bits, what normalises.
#include <algorithm>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

constexpr int kKeysOfThreads = 32;  ///< that the groups of four threads share

bool has_mean(const EstimateSpec& estimate) {
  return estimate.q.kind == SummaryKind::kMean || estimate.k.kind == SummaryKind::kMean;
}

/// What of the other side a summary can be compared with: "\"mean\", \"tokens\"".
std::string partners_of(const Summary& summary, SummarySide other) {
  std::string text;
  for (const SummaryInfo& row : summaries_of(other)) {
    const Summary partner{row.kind, summary.count};
    const bool fits = other == SummarySide::kKeys ? are_compared(summary, partner)
                                                  : are_compared(partner, summary);
    if (!fits) continue;
    const bool has_same_count = row.kind == SummaryKind::kAntidiagonal;
    const std::string form = has_same_count ? name_of(partner) : form_of(row.kind);
    text += (text.empty() ? "\"" : ", \"") + form + "\"";
  }
  return text;
}

class EstimateRules {
 public:
  EstimateRules(const RuleContext& context, const PredictorSpec& predictor)
      : context_(context), predictor_(predictor) {}

  void check(const EstimateSpec& estimate) {
    if (context_.at("predictor.estimate.from") != nullptr) return check_given(estimate);
    if (!context_.sound({"predictor.estimate.q", "predictor.estimate.k", "predictor.tile.q",
                         "predictor.tile.k"}))
      return;
    if (estimate.index) {
      check_index(context_, estimate);
      if (context_.diagnostics.has_errors()) return;
    }
    if (!are_compared(estimate.q, estimate.k)) {
      context_.conflict(
          "predictor.estimate.k",
          "predictor.estimate: q " + quoted(estimate.q) + " does not go with k " +
              quoted(estimate.k),
          "means of tiles are compared with means or bounds of tiles or tokens, tokens "
          "with tokens, means of cells with means of cells, antidiagonals with those of "
          "the same size",
          "legal with q " + quoted(estimate.q) + ": k " +
              partners_of(estimate.q, SummarySide::kKeys) + "; legal with k " + quoted(estimate.k) +
              ": q " + partners_of(estimate.k, SummarySide::kQueries));
      return;
    }
    if (info(estimate.q.kind).divides_tile)
      check_cells(estimate.q, "predictor.tile.q", predictor_.tile_q);
    if (info(estimate.k.kind).divides_tile)
      check_cells(estimate.k, "predictor.tile.k", predictor_.tile_k);
    if (context_.at("predictor.estimate.dims") != nullptr) check_dims(estimate);
    if (context_.sound({"predictor.estimate.bits"})) check_bits(estimate);
    if (context_.sound({"predictor.estimate.normalise"})) check_normalise(estimate);
    if (context_.at("predictor.estimate.exclude") != nullptr) check_exclude(estimate);
  }

 private:
  /// Scores that the spec says itself: nothing is compared, and a tile has one.
  void check_given(const EstimateSpec& estimate) {
    for (const char* field : {"index", "q", "k", "bits", "group", "reduce", "dims", "reference"}) {
      const std::string path = std::string("predictor.estimate.") + field;
      if (context_.at(path) == nullptr) continue;
      context_.conflict(path, path + " does not go with predictor.estimate.from",
                        "with from, the scores of tiles are given: nothing is compared",
                        "leave one of them out");
    }
    if (has_exact_lse(estimate.normalise) && context_.sound({"predictor.estimate.normalise"}))
      context_.conflict("predictor.estimate.normalise",
                        "predictor.estimate.normalise = \"" +
                            std::string(name_of(estimate.normalise)) +
                            "\" does not go with predictor.estimate.from",
                        "a log-sum-exp is one number for each query token, and a row of given "
                        "scores is a query tile",
                        "\"softmax\", \"row_max\" or \"none\"");
    check_mass(estimate);
  }

  /// A cell, or the step from one row to the next, lies in one tile. The largest legal one is the
  /// nearest.
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
    const bool is_step = !has_cells(cells);
    context_.conflict(path,
                      std::string(path) + " = " + std::to_string(tile) +
                          " is not a multiple of the " + count + " tokens of a " +
                          (is_step ? "step of " : "cell of ") + quoted(cells),
                      is_step ? "all tiles have the same rows" : "a cell lies in one tile", help);
  }

  void check_dims(const EstimateSpec& estimate) {
    const std::string dims = "predictor.estimate.dims";
    if (in_integers(estimate))
      context_.conflict(dims, dims + " does not go with bits 8 or 4",
                        "the integers and the biases of smoothing are those of whole rows",
                        "leave bits or dims out");
    if (has_exact_lse(estimate.normalise))
      context_.conflict(
          dims,
          dims + " does not go with normalise \"" + std::string(name_of(estimate.normalise)) + "\"",
          "the log-sum-exp is that of whole rows", "leave it out, or \"normalise\": \"softmax\"");
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
                        "and some of the queries in the element type of the tensors",
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
    const bool has_reference = context_.at("predictor.estimate.reference") != nullptr;
    const bool are_rows = are_tokens(estimate.q.kind) && estimate.q.kind != SummaryKind::kLast;
    if (has_reference && estimate.normalise != Normalise::kLse)
      context_.conflict("predictor.estimate.reference",
                        "predictor.estimate.reference needs normalise \"lse\", not \"" +
                            std::string(name_of(estimate.normalise)) + "\"",
                        "it chooses the keys whose exact log-sum-exp normalises",
                        are_rows ? "leave normalise or reference out" : "leave reference out");
    const bool says = context_.at("predictor.estimate.normalise") != nullptr;
    if (per_query && !are_rows) {
      const std::string tokens = std::string("\"q\": \"tokens\"") +
                                 (are_tokens(estimate.k.kind) ? "" : ", \"k\": \"tokens\"");
      context_.conflict(
          says ? "predictor.estimate.normalise" : "predictor.estimate.reference",
          (says ? "predictor.estimate.normalise = \"" + std::string(name_of(estimate.normalise)) +
                      "\""
                : std::string("predictor.estimate.reference")) +
              " needs q \"tokens\", not " + quoted(estimate.q),
          "a log-sum-exp is one number for each query token",
          has_reference
              ? tokens + ", or leave " + (says ? "normalise and reference" : "reference") + " out"
              : tokens + ", or \"normalise\": \"softmax\"");
    }
    check_mass(estimate);
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

  void check_mass(const EstimateSpec& estimate) {
    if (estimate.normalise != Normalise::kNone || !uses(predictor_.keep, Variable::kMassBefore))
      return;
    context_.conflict_in("predictor.keep", predictor_.keep, Variable::kMassBefore,
                         "predictor.keep: 'mass_before' needs a normalised estimate, and "
                         "predictor.estimate.normalise is \"none\"",
                         "top-p with no normalisation: mass_before sums probabilities, and plain "
                         "logits are none",
                         "\"normalise\": \"softmax\", or compare `rank`");
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

  const RuleContext& context_;
  const PredictorSpec& predictor_;
};

}  // namespace

std::string quoted(const Summary& summary) { return "\"" + name_of(summary) + "\""; }

bool in_integers(const EstimateSpec& estimate) { return estimate.bits == 8 || estimate.bits == 4; }

void check_estimate(const RuleContext& context, const PredictorSpec& predictor) {
  EstimateRules(context, predictor).check(*predictor.estimate);
}

}  // namespace lacuna
