#include "compiler/ir/verify/verify_rules.hpp"

#include <algorithm>

#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/names.hpp"

namespace lacuna {

ValueType input_type(std::string_view name, DType dtype) {
  using enum Dim;
  if (name == "q") return {element_of(dtype), {kBatch, kHeads, kNQ, kHeadDim}};
  if (name == "k" || name == "v") return {element_of(dtype), {kBatch, kHeadsKv, kNK, kHeadDim}};
  if (name == "list_indices") return {Element::kI32, {kBatch, kHeads, kQTiles, kCapacity}};
  if (name == "list_counts") return {Element::kI32, {kBatch, kHeads, kQTiles}};
  if (name == "order") return {Element::kI32, {kNQ}};
  if (name == "previous_lse") return {Element::kF32, {kBatch, kHeads, kNQ}};
  return {};
}

const ValueType& type_of(const Program& program, int id) {
  static const ValueType none;
  return id < 0 ? none : program.values[static_cast<std::size_t>(id)].type;
}

bool defines(const Program& program, const Node& node, const std::vector<ValueType>& types) {
  return std::ranges::equal(node.results, types, [&](int id, const ValueType& type) {
    return type_of(program, id) == type;
  });
}

std::string_view tensor_name(const Program& program, int id) {
  if (const auto* means = defined_by<Means>(program, id)) id = means->x;
  if (const auto* permute = defined_by<Permute>(program, id)) id = permute->x;
  const auto* input = defined_by<Input>(program, id);
  const bool is_tensor =
      input != nullptr && (input->name == "q" || input->name == "k" || input->name == "v");
  return is_tensor ? std::string_view(input->name) : "";
}

bool is_mean_of(const Program& program, int id, int x) {
  const auto* smooth = defined_by<Smooth>(program, id);
  return smooth != nullptr && smooth->x == x;
}

Dim side_of(const Program& program, int x, Dim queries, Dim keys) {
  return tensor_name(program, x) == "q" ? queries : keys;
}

Dim heads_of(const Program& program, int x) {
  return side_of(program, x, Dim::kHeads, Dim::kHeadsKv);
}

bool yields(const Expr& expr, ExprType type) { return expr.empty() || expr.root().type == type; }

bool reads_program_parameters(const Program& program, const Expr& expr) {
  if (expr.empty()) return true;
  return std::ranges::equal(
      expr.parameters, program.params,
      [](const ParamSymbol& symbol, const ParamSpec& param) { return symbol == param.symbol; });
}

bool reads(const Expr& expr, Variable variable) { return !expr.empty() && uses(expr, variable); }

const Quantise* quantised(const Program& program, int values, int scales, std::string_view name) {
  const auto* op = defined_by<Quantise>(program, values, 0);
  const bool one_op = op != nullptr && defined_by<Quantise>(program, scales, 1) == op;
  return one_op && tensor_name(program, op->x) == name ? op : nullptr;
}

namespace {

/// Is `bias` x (without x_mean) projected onto `mean`, or absent because there is no mean?
bool is_bias(const Program& program, int bias, int x, int x_mean, int mean) {
  if (mean < 0) return bias < 0;
  const auto* project = defined_by<Project>(program, bias);
  return project != nullptr && project->x == x && project->mean == x_mean && project->onto == mean;
}

}  // namespace

bool has_right_biases(const Program& program, const Quantise& q, const Quantise& k, int row_bias,
                      int column_bias) {
  return is_bias(program, row_bias, q.x, -1, k.mean) &&
         is_bias(program, column_bias, k.x, k.mean, q.mean);
}

}  // namespace lacuna
