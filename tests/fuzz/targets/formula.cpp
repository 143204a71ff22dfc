#include <array>
#include <bit>
#include <cmath>

#include "compiler/expr/bounds/interval.hpp"
#include "compiler/expr/bounds/key_ranges.hpp"
#include "compiler/expr/bounds/monotonicity.hpp"
#include "compiler/expr/builder.hpp"
#include "compiler/expr/parts/mask_parts.hpp"
#include "compiler/expr/parts/score_parts.hpp"
#include "compiler/expr/parts/shared_parts.hpp"
#include "compiler/expr/text/print_cuda.hpp"
#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {
namespace {

using test::ProblemSize;
using test::Random;

const CudaNames kNames = {
    [](Variable variable) { return std::string(info(variable).name); },
    [](const ParamSymbol& symbol) { return "args." + symbol.name; },
};

/// A seed that the bytes decide, so that an input always does the same.
std::uint64_t seed_of(std::string_view bytes) {
  std::uint64_t seed = 0xcbf29ce484222325u;
  for (const char c : bytes) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

Bindings bind_row(int q, const ProblemSize& size) {
  Bindings bindings;
  bindings.parameters = formula_parameters().views;
  bindings.set(Variable::kNQ, size.n_q);
  bindings.set(Variable::kNK, size.n_k);
  bindings.set(Variable::kNH, size.heads);
  bindings.set(Variable::kH, 1);
  bindings.set(Variable::kB, 1);
  bindings.set(Variable::kQ, q);
  return bindings;
}

/// The classifier of a mask against every pair of a tile.
void check_tile(const Expr& mask, const TileClassifier& classifier, int q0, int k0,
                const ProblemSize& size) {
  Bindings bindings = bind_row(q0, size);
  const int q1 = std::min(q0 + 3, size.n_q - 1), k1 = std::min(k0 + 5, size.n_k - 1);
  bindings.set(Variable::kQ0, q0);
  bindings.set(Variable::kQ1, q1);
  bindings.set(Variable::kK0, k0);
  bindings.set(Variable::kK1, k1);
  const bool must = evaluate(classifier.must, bindings).boolean;
  const bool may = evaluate(classifier.may, bindings).boolean;
  for (int q = q0; q <= q1; ++q) {
    for (int k = k0; k <= k1; ++k) {
      bindings.set(Variable::kQ, q);
      bindings.set(Variable::kK, k);
      const bool visible = evaluate(mask, bindings).boolean;
      require(visible || !must, "a full tile has a masked pair: " + classifier.must.text);
      require(!visible || may, "an empty tile has a visible pair: " + classifier.may.text);
    }
  }
}

/// The keys that a row's ranges hold are those that the mask shows it.
void check_ranges(const Expr& mask, std::span<const KeyRange> ranges, int q,
                  const ProblemSize& size) {
  Bindings bindings = bind_row(q, size);
  for (int k = 0; k < size.n_k; ++k) {
    bindings.set(Variable::kK, k);
    bool is_inside = false;
    for (const KeyRange& range : ranges)
      is_inside |= (range.first.empty() || evaluate(range.first, bindings).i32 <= k) &&
                   (range.last.empty() || k <= evaluate(range.last, bindings).i32);
    require(is_inside == evaluate(mask, bindings).boolean, "a range of keys differs from the mask");
  }
}

/// Conditions of a mask say the same of all pairs that share what they depend on.
void check_conditions(const Expr& mask, int q, int k, const ProblemSize& size) {
  const MaskParts parts = split_mask(mask);
  for (const MaskSource source : {MaskSource::kDistance, MaskSource::kKey, MaskSource::kQuery}) {
    const int next_q = q + (source == MaskSource::kQuery ? 0 : 1);
    const int next_k = k + (source == MaskSource::kKey ? 0 : 1);
    for (const Expr& condition : parts.of(source)) {
      Bindings bindings = bind_row(q, size);
      bindings.set(Variable::kK, k);
      const bool counts = evaluate(condition, bindings).boolean;
      bindings.set(Variable::kQ, next_q), bindings.set(Variable::kK, next_k);
      require(counts == evaluate(condition, bindings).boolean, "a condition differs among pairs");
    }
  }
}

void check_selection(const Expr& mask) {
  const ProblemSize size;
  Random random(seed_of(mask.text));
  const TileClassifier classifier = classify_mask(mask);
  const std::vector<KeyRange> ranges = key_ranges(mask);
  require(ranges.size() <= kMostKeyRanges, "too many ranges of keys");
  for (int n = 0; n < 3; ++n) {
    const int q = random.below(size.n_q);
    const int k = random.below(size.n_k);
    check_tile(mask, classifier, q, k, size);
    check_conditions(mask, q, k, size);
    if (!ranges.empty()) check_ranges(mask, ranges, q, size);
  }
}

void check_score(const Expr& score) {
  const ScoreParts parts = split_score(score);
  Bindings bindings = bind_row(3, {});
  for (const Expr* part : {&parts.factor, &parts.core, &parts.offset, &parts.slope, &parts.rest})
    if (!part->empty()) evaluate(*part, bindings);
  const auto split = shared_parts(parts.rest);
  if (!split || split->of_distance.empty()) return;
  const Scalar value = evaluate(split->of_distance, bindings);
  bindings.set(Variable::kQ, 4),
      bindings.set(Variable::kK,
                   bindings.variables[static_cast<std::size_t>(Variable::kK)].i32 + 1);
  const float next = evaluate(split->of_distance, bindings).f32;
  require(std::bit_cast<std::uint32_t>(value.f32) == std::bit_cast<std::uint32_t>(next),
          "a part of the distance differs along a diagonal");
}

// Expressions as they are, which the parser never makes: it folds.

/// Brings operands to the types that an operator takes; false: it does not take them.
bool promote(ExprBuilder& builder, const OperatorInfo& op, std::span<int> operands) {
  const bool selects = op.signature == Signature::kSelect;
  if (selects && builder[operands[0]].type != ExprType::kBool) return false;
  const std::span<int> values = operands.subspan(selects ? 1 : 0);
  bool is_real = op.signature == Signature::kFloat;
  for (const int id : values) {
    const ExprType type = builder[id].type;
    if ((type == ExprType::kBool) != (op.signature == Signature::kLogical)) return false;
    if (type == ExprType::kF32 && op.signature == Signature::kInteger) return false;
    is_real |= type == ExprType::kF32;
  }
  for (int& id : values) {
    if (!is_real || builder[id].type != ExprType::kI32) continue;
    ExprNode node{.op = ExprOp::kToF32, .type = ExprType::kF32, .children = {id, -1, -1}};
    id = builder.intern(node);
  }
  return true;
}

int leaf(ExprBuilder& builder, unsigned choice) {
  static constexpr double kReals[] = {0, -0.0, 1, -1, 0.5, 2, INFINITY, -INFINITY, 1e-40, 3e38};
  static constexpr double kIntegers[] = {0, 1, -1, 2, 7, 64, 2147483647, -2147483648.0};
  static constexpr Variable kVariables[] = {Variable::kS, Variable::kQ, Variable::kK, Variable::kNQ,
                                            Variable::kH};
  switch (choice % 4) {
    case 0:
      return builder.literal(ExprType::kF32,
                             static_cast<float>(kReals[choice / 4 % std::size(kReals)]));
    case 1:
      return builder.literal(ExprType::kI32, kIntegers[choice / 4 % std::size(kIntegers)]);
    case 2:
      return builder.boolean(choice / 4 % 2 == 0);
    default:
      return builder.variable(kVariables[choice / 4 % std::size(kVariables)]);
  }
}

/// Reads the bytes as operators in postfix order, without folding; empty if they yield nothing.
Expr unfolded(std::string_view bytes) {
  constexpr std::size_t kMostBytes = 256;
  ExprBuilder builder;
  std::vector<int> stack;
  for (const char c : bytes.substr(0, kMostBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    const auto op = static_cast<ExprOp>(byte % 64);
    if (op > ExprOp::kBitLength || op <= ExprOp::kToF32) {
      stack.push_back(leaf(builder, byte));
      continue;
    }
    const OperatorInfo& facts = info(op);
    const auto arity = static_cast<std::size_t>(facts.arity);
    if (stack.size() < arity) continue;
    const std::span operands = std::span(stack).last(arity);
    if (!promote(builder, facts, operands)) continue;
    ExprNode node{.op = op};
    std::ranges::copy(operands, node.children.begin());
    node.type = result_type(builder, op, node.children[0], node.children[1]);
    stack.resize(stack.size() - arity);
    stack.push_back(builder.intern(node));
  }
  return stack.empty() ? Expr{} : builder.extract(stack.back(), {});
}

bool is_same(ExprType type, Scalar a, Scalar b) {
  if (type == ExprType::kBool) return a.boolean == b.boolean;
  if (type == ExprType::kI32) return a.i32 == b.i32;
  return (std::isnan(a.f32) && std::isnan(b.f32)) ||
         std::bit_cast<std::uint32_t>(a.f32) == std::bit_cast<std::uint32_t>(b.f32);
}

/// Folding keeps the value for all inputs.
void check_folding(const Expr& expr, std::uint64_t seed) {
  static constexpr std::int32_t kIntegers[] = {0, 1, -1, 2, 63, 2147483647, -2147483647 - 1};
  static constexpr float kReals[] = {0, -0.0f, 1, -1, 0.75f, 1e30f, INFINITY, -INFINITY, NAN};
  const Expr folded = fold(expr);
  require(folded.root().type == expr.root().type, "folding changed a type");
  require(folded.nodes.size() <= expr.nodes.size() + 8, "folding made an expression longer");
  Random random(seed);
  for (int n = 0; n < 6; ++n) {
    Bindings bindings;
    for (const VariableInfo& row : all_variables()) {
      if (row.type == ExprType::kF32) bindings.set(row.variable, kReals[random.below(9)]);
      if (row.type == ExprType::kI32) bindings.set(row.variable, kIntegers[random.below(7)]);
    }
    require(is_same(expr.root().type, evaluate(expr, bindings), evaluate(folded, bindings)),
            "folding changed a value: " + print_expr(expr) + " became " + print_expr(folded));
  }
}

/// As the definition of a name it is the same where the name stands.
void check_by_name(std::string_view text, Site site, const Expr& expr) {
  const std::span<const ParamSymbol> symbols = formula_parameters().symbols;
  const std::array lets = {LetSymbol{"by_name", parse_expr(text, Site::kLet, symbols).expr}};
  const ParsedExpr named = parse_expr("by_name", site, symbols, {lets});
  const bool is_too_long = !named.ok() && named.errors[0].code == Code::kExprTooComplex;
  require(is_too_long || named.expr == expr, "another by its name: " + print_expr(named.expr));
}

}  // namespace

const test::ParameterSet& formula_parameters() {
  static const test::ParameterSet set = [] {
    Random random(21);
    return test::random_parameters(random, {}, true);
  }();
  return set;
}

bool check_formula(std::string_view text, Site site) {
  const std::span<const ParamSymbol> symbols = formula_parameters().symbols;
  const ParsedExpr parsed = parse_expr(text, site, symbols);
  require(parsed.ok() != parsed.expr.empty(), "an expression with errors, or none and no error");
  for (const ExprError& error : parsed.errors) {
    require(error.begin <= error.end && error.end <= text.size(), "an error outside of the text");
    require(!error.message.empty(), "an error without a message");
  }
  if (!parsed.ok()) return false;
  const std::string printed = print_expr(parsed.expr);
  require(parse_expr(printed, site, symbols).expr == parsed.expr,
          "read again as another: " + printed);
  if (site != Site::kLaunch) check_by_name(text, site, parsed.expr);
  require(!print_cuda_body(parsed.expr, kNames).value.empty(), "no CUDA");
  evaluate(parsed.expr, bind_row(1, {}));
  for (const Variable variable : {Variable::kQ, Variable::kK, Variable::kS})
    monotonicity_of(parsed.expr, variable);
  if (site == Site::kMask) check_selection(parsed.expr);
  if (site == Site::kScore) check_score(parsed.expr);
  return true;
}

bool run_formula(std::string_view bytes) {
  bool is_accepted = false;
  for (const SiteInfo& row : all_sites())
    if (row.yields) is_accepted |= check_formula(bytes, row.site);
  if (const Expr expr = unfolded(bytes); !expr.empty()) check_folding(expr, seed_of(bytes));
  return is_accepted;
}

}  // namespace lacuna::fuzz
