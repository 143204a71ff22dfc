#include "compiler/spec/read/rule_context.hpp"

#include <algorithm>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {
namespace {

/// The innermost value of a path that is there.
const JsonNode& innermost(const RuleContext& context, std::string_view path, bool& complete) {
  constexpr std::string_view kPredictor = "predictor";
  const JsonNode* found = &context.root;
  if (context.step != nullptr && path.starts_with(kPredictor)) {
    found = context.step;
    path.remove_prefix(std::min(path.size(), kPredictor.size() + 1));
  }
  for (complete = true; !path.empty();) {
    const std::size_t dot = path.find('.');
    const JsonNode* child = found->find(path.substr(0, dot));
    if (child == nullptr) {
      complete = false;
      break;
    }
    found = child;
    if (!child->usable) break;
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return *found;
}

}  // namespace

const JsonNode* RuleContext::at(std::string_view path) const {
  bool complete = false;
  const JsonNode& node = innermost(*this, path, complete);
  return complete && node.usable ? &node : nullptr;
}

bool RuleContext::sound(std::initializer_list<std::string_view> paths) const {
  return std::all_of(paths.begin(), paths.end(), [&](std::string_view path) {
    bool complete = false;
    return innermost(*this, path, complete).usable;
  });
}

Diagnostic& RuleContext::report(Code code, const JsonNode& node, std::string message) const {
  return diagnostics.add(
      {.code = code, .message = std::move(message), .pointer = node.pointer, .span = node.span});
}

Diagnostic& RuleContext::conflict(std::string_view path, std::string message, std::string why,
                                  std::string help) const {
  bool complete = false;
  const JsonNode& node = innermost(*this, path, complete);
  Diagnostic& d = report(Code::kConflict, node, std::move(message));
  if (node.is(JsonNode::Kind::kObject) && node.key_span.line != 0) d.span = node.key_span;
  d.notes.push_back(std::move(why));
  d.helps.push_back(std::move(help));
  return d;
}

Diagnostic& RuleContext::conflict_in(std::string_view path, const Expr& expr, Variable variable,
                                     std::string message, std::string why, std::string help) const {
  Diagnostic& d = conflict(path, std::move(message), std::move(why), std::move(help));
  const auto reads = std::find_if(expr.nodes.begin(), expr.nodes.end(), [&](const ExprNode& node) {
    return is_variable(node, variable);
  });
  const JsonNode* node = at(path);
  if (node != nullptr && reads != expr.nodes.end())
    d.span = span_in_string(source, *node, reads->begin, reads->end);
  return d;
}

const JsonNode* last_step(const JsonNode& node) {
  const JsonNode* predictor = node.find("predictor");
  const bool has_steps =
      predictor != nullptr && predictor->is(JsonNode::Kind::kArray) && !predictor->children.empty();
  return has_steps ? &predictor->children.back() : predictor;
}

const Variable* first_used(const Expr& expr, std::span<const Variable> variables) {
  for (const Variable& variable : variables)
    if (uses(expr, variable)) return &variable;
  return nullptr;
}

std::string nearest_divisors(int whole, int value) {
  int below = 0, above = 0;
  for (int tile = 16; tile <= whole; tile += 16) {
    if (whole % tile != 0) continue;
    if (tile <= value) below = tile;
    if (tile > value && above == 0) above = tile;
  }
  std::string out = below != 0 ? std::to_string(below) : "";
  if (above != 0) out += (out.empty() ? "" : ", ") + std::to_string(above);
  return out;
}

}  // namespace lacuna
