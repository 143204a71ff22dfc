// Rules of predictor.estimate.index, with which an estimate compares vectors from parameters
// instead of q and k.
#include <array>
#include <string>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

/// Where index_h or index_d by itself indexes a dimension of a fixed extent, that extent has to be
/// the number of index heads, or the length of a vector. Otherwise reads behind the parameter's end
/// would be clamped to its last element, and nobody would notice.
void check_extents(const RuleContext& context, const IndexSpec& index, const std::string& path,
                   const Expr& expr) {
  for (const ExprNode& node : expr.nodes) {
    if (node.op != ExprOp::kParameter) continue;
    const ParamSymbol& param = expr.parameters[node.symbol];
    for (std::size_t d = 0; d < param.shape.size(); ++d) {
      if (param.shape[d].axis != ParamAxis::kFixed || node.children[d] < 0) continue;
      const ExprNode& child = expr.nodes[static_cast<std::size_t>(node.children[d])];
      const bool is_head = is_variable(child, Variable::kIndexH);
      if (!is_head && !is_variable(child, Variable::kIndexD)) continue;
      const int count = is_head ? index.heads : index.dim, extent = param.shape[d].extent;
      if (count == extent) continue;
      const std::string field =
          std::string("predictor.estimate.index.") + (is_head ? "heads" : "dim");
      context.conflict(
          path,
          path + ": " + (is_head ? "index_h" : "index_d") + " runs through " +
              std::to_string(count) + " elements, " + param.name + " has " +
              std::to_string(extent) + " there",
          "it is the number of an index " + std::string(is_head ? "head" : "vector's element") +
              ", from 0 to " + field + " - 1",
          field + " = " + std::to_string(extent) + ", or a parameter of " + std::to_string(count));
      return;
    }
  }
}

}  // namespace

void check_index(const RuleContext& context, const EstimateSpec& estimate) {
  const IndexSpec& index = *estimate.index;
  const auto summary = [&](const char* path, const Summary& given, const char* legal) {
    context.conflict(
        path,
        std::string(path) + ": " + quoted(given) + " does not go with predictor.estimate.index",
        "an index has a vector for each token", legal);
  };
  if (!are_tokens(estimate.q.kind))
    summary("predictor.estimate.q", estimate.q,
            "leave it out, or \"tokens\", \"stride(n)\" or \"last(n)\"");
  if (!are_tokens(estimate.k.kind))
    summary("predictor.estimate.k", estimate.k, "leave it out, or \"tokens\"");
  for (const char* field : {"bits", "group", "dims", "reference"}) {
    const std::string path = std::string("predictor.estimate.") + field;
    if (context.at(path) == nullptr) continue;
    context.conflict(path, path + " does not go with predictor.estimate.index",
                     "it is about q and k, which an index does not compare",
                     "leave one of them out");
  }
  if (has_exact_lse(estimate.normalise) && context.at("predictor.estimate.reference") == nullptr)
    context.conflict("predictor.estimate.normalise",
                     "predictor.estimate.normalise = \"" +
                         std::string(name_of(estimate.normalise)) +
                         "\" does not go with predictor.estimate.index",
                     "the log-sum-exp is that of the products of q and k, which an index does not "
                     "compare",
                     "\"none\", \"softmax\" or \"row_max\"");
  if (!context.sound({"predictor.estimate.index.heads", "predictor.estimate.index.dim"})) return;
  const std::string path = "predictor.estimate.index";
  check_extents(context, index, path + ".q", index.q);
  check_extents(context, index, path + ".k", index.k);
  check_extents(context, index, path + ".weight", index.weight);
}

}  // namespace lacuna
