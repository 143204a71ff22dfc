// Rules of branches: what belongs into a branch, how outputs are joined, what means go with.
#include <algorithm>

#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/table/bands.hpp"

namespace lacuna {
namespace {

std::string label_of(std::size_t branch) { return "branches[" + std::to_string(branch) + "]"; }

/// The branch as its own rules see it.
RuleContext context_of(const RuleContext& context, std::size_t branch) {
  const JsonNode& node = context.root.find("branches")->children[branch];
  return {context.source, node, context.spec.branches[branch], context.diagnostics,
          last_step(node)};
}

/// What is said of one attend, beside several.
void check_root(const RuleContext& context) {
  for (const char* field : {"predictor", "gate", "quantise", "tile", "loader"}) {
    if (context.root.find(field) == nullptr) continue;
    context.conflict(field, std::string(field) + " does not go with branches",
                     "each branch is an attend with tiles of its own",
                     "write it in the branches that it is meant for");
  }
  const auto refuse = [&](const char* field, const char* why) {
    const JsonNode* node = context.at(field);
    if (node == nullptr) return;
    context.conflict(field, std::string(field) + " does not go with branches", why,
                     "leave it out, or write a spec for each branch");
  };
  refuse("mask", "a launch takes one set of lists, and branches have tiles of their own");
  // Where outputs of branches are added, each branch has its own softmax, with its own sink.
  const std::vector<VariantSpec>& branches = context.spec.branches;
  const auto is_added = [](const VariantSpec& branch) { return !branch.branch.weight.empty(); };
  if (std::ranges::none_of(branches, is_added))
    refuse("attention.sink", "branches are merged as one softmax, and each would count it");
}

/// All branches have a weight, or none has.
void check_weights(const RuleContext& context) {
  const std::vector<VariantSpec>& branches = context.spec.branches;
  const auto has_weight = [&](std::size_t n) {
    return context_of(context, n).root.find("weight") != nullptr;
  };
  std::size_t weighted = 0;
  for (std::size_t n = 0; n < branches.size(); ++n) weighted += has_weight(n) ? 1 : 0;
  for (std::size_t n = 0; n < branches.size(); ++n) {
    const RuleContext own = context_of(context, n);
    if (weighted == 0 || has_weight(n)) continue;
    own.conflict("", label_of(n) + " has no weight, but others have",
                 "outputs are added by weights, or merged by their log-sum-exps",
                 "\"weight\": \"1\", or leave out the weights of the others");
  }
  if (const Weights weights = context.spec.attention.normalise;
      weighted == 0 && !has_denominator(weights)) {
    const std::string name = "\"" + std::string(name_of(weights)) + "\"";
    context.conflict("attention.normalise",
                     "attention.normalise " + name + " does not go with branches without weights",
                     "they are merged by their log-sum-exps, which " + name + " lacks",
                     "\"weight\": \"1\" in each branch adds them");
  }
  if (weighted == branches.size() && context.at("attention.lse") != nullptr &&
      context.spec.attention.lse)
    context.conflict("attention.lse", "attention.lse does not go with weights of branches",
                     "a sum of several softmaxes has no log-sum-exp", "leave lse out");
}

void check_names(const RuleContext& context) {
  const std::vector<VariantSpec>& branches = context.spec.branches;
  for (std::size_t n = 0; n < branches.size(); ++n)
    for (std::size_t m = 0; m < n; ++m)
      if (context_of(context, n).at("name") != nullptr &&
          branches[m].branch.name == branches[n].branch.name)
        context_of(context, n)
            .conflict("name", label_of(n) + ".name = \"" + branches[n].branch.name + "\" is taken",
                      label_of(m) + " has it, and names tell kernels apart", "another name");
}

/// What means pass besides: how many tokens they are of.
void check_means_params(const RuleContext& context, std::size_t passed) {
  const std::size_t most = kMaxParams - passed;
  if (context.spec.params.size() > most)
    context.conflict("params",
                     "params: expected at most " + std::to_string(most) +
                         " with branches over means, got " +
                         std::to_string(context.spec.params.size()),
                     "the number of " + std::string(passed > 1 ? "key and of query" : "key") +
                         " tokens is passed as a parameter besides",
                     "fewer parameters: several numbers can be rows of one table");
  for (const ParamSpec& param : context.spec.params) {
    if (param.symbol.name != kTokensParam && param.symbol.name != kQueriesParam) continue;
    context.conflict("params." + param.symbol.name,
                     "params." + param.symbol.name +
                         ": branches over means pass a parameter of "
                         "this name",
                     "it tells their kernels the number of tokens", "choose another name");
  }
}

/// Means take the place of the tokens for attend alone.
void check_means(const RuleContext& context, std::size_t n) {
  const RuleContext own = context_of(context, n);
  if (!own.sound({"means", "query_means"})) return;
  const BranchSpec& branch = own.spec.branch;
  const bool has_keys = branch.means > 1, has_queries = branch.query_means > 1;
  if (!has_keys && !has_queries) return;
  const std::string name = has_keys ? "means" : "query_means";
  for (const char* field : {"predictor", "gate", "quantise"}) {
    if (own.root.find(field) == nullptr) continue;
    own.conflict(field, std::string(field) + " does not go with " + name,
                 "a branch over means computes every visible tile, in 16 bits",
                 "leave it out, or leave " + name + " out");
  }
  check_means_params(context, (has_keys ? 1 : 0) + (has_queries ? 1 : 0));
  if (has_queries && own.root.find("weight") == nullptr)
    own.conflict("query_means", label_of(n) + ".query_means does not go without weights",
                 "a mean of queries has one log-sum-exp, which is that of none of its tokens",
                 "\"weight\": \"1\" in each branch adds them");
}

/// A branch has rows of its own width, which lie one behind the other in memory.
void check_dims(const RuleContext& context, std::size_t n) {
  const RuleContext own = context_of(context, n);
  const std::string& dims = own.spec.branch.dims;
  if (dims.empty() || !own.sound({"dims"})) return;
  if (!only_band(dims, 0))
    own.conflict("dims", label_of(n) + ".dims: expected one band, got \"" + dims + "\"",
                 "a branch reads rows of elements that lie one behind the other",
                 "one of the bands; what compares several is predictor.estimate.dims");
  if (context.spec.attention.v == ValuesOf::kKeys)
    own.conflict("dims", label_of(n) + ".dims does not go with attention.v \"k\"",
                 "V would be the first elements of each key, which the branch does not read",
                 "leave one of them out");
}

/// What a launch leaves for the next one is one log-sum-exp.
void check_calls(const RuleContext& context, std::size_t n) {
  const RuleContext own = context_of(context, n);
  for (const PredictorSpec* step : own.spec.steps()) {
    if (step->estimate && step->estimate->normalise == Normalise::kPreviousLse)
      own.conflict("predictor.estimate.normalise",
                   "predictor.estimate.normalise \"previous_lse\" does not go with branches",
                   "the log-sum-exp of an earlier call is that of all branches",
                   "\"lse\" or \"softmax\"");
  }
}

/// Tiles differ from branch to branch, so that no extent would be right for all.
void check_tile_params(const RuleContext& context) {
  for (const ParamSpec& param : context.spec.params) {
    const auto of_tiles = [](const ParamDim& dim) {
      return dim.axis == ParamAxis::kQTiles || dim.axis == ParamAxis::kKTiles;
    };
    if (std::none_of(param.symbol.shape.begin(), param.symbol.shape.end(), of_tiles)) continue;
    context.conflict("params." + param.symbol.name + ".shape",
                     "params." + param.symbol.name +
                         ".shape: q_tiles and k_tiles do not go with "
                         "branches",
                     "branches have tiles of their own", "a dimension of tokens, or of heads");
  }
}

}  // namespace

void check_branches(const RuleContext& context) {
  check_root(context);
  check_weights(context);
  check_names(context);
  check_tile_params(context);
  for (std::size_t n = 0; n < context.spec.branches.size(); ++n) {
    check_means(context, n);
    check_dims(context, n);
    check_calls(context, n);
  }
}

}  // namespace lacuna
