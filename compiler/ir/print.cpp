// Program -> text, from the field tables.
#include <charconv>
#include <cmath>

#include "compiler/expr/text/parse.hpp"
#include "compiler/ir/fields.hpp"
#include "compiler/ir/names.hpp"

namespace lacuna {
namespace {

/// Shortest digits that read back as the same number; "inf", "-inf".
template <class Number>
std::string digits(Number x) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr};
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

template <class Items, class ToText>
std::string join(const Items& items, ToText to_text) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += to_text(item);
  }
  return text;
}

std::string text_of(int x) { return std::to_string(x); }
std::string text_of(float x) { return digits(x); }
std::string text_of(bool x) { return x ? "true" : "false"; }
std::string text_of(const std::string& x) { return quote(x); }
template <class E>
requires std::is_enum_v<E> std::string text_of(E x) { return std::string(name_of(x)); }
std::string text_of(const Summary& summary) { return name_of(summary); }
std::string text_of(const std::optional<Gate>& gate);

/// The arguments of an op, comma-separated, those with their default value left out.
template <class T>
class ArgumentPrinter {
 public:
  ArgumentPrinter(const T& op, const std::vector<Value>* values) : op_(op), values_(values) {}

  std::string print() {
    for_each_field<T>([this](const auto& field) { this->add(field); });
    return text_;
  }

 private:
  void append(const std::string& argument) {
    if (!text_.empty()) text_ += ", ";
    text_ += argument;
  }
  void add(const Operand<T>& field) {
    const int id = op_.*field.member;
    if (id < 0 || id >= static_cast<int>(values_->size())) return;
    const std::string value = "%" + (*values_)[static_cast<std::size_t>(id)].name;
    append(field.positional ? value : std::string(field.name) + "=" + value);
  }
  template <class V>
  void add(const Attribute<T, V>& field) {
    if (op_.*field.member == defaults_.*field.member) return;
    append(std::string(field.name) + "=" + text_of(op_.*field.member));
  }
  void add(const Formula<T>& field) {
    const Expr& expr = op_.*field.member;
    if (!expr.empty()) append(std::string(field.name) + "=" + quote(print_expr(expr)));
  }
  template <std::size_t N>
  void add(const Flags<T, N>& field) {
    std::vector<std::string> set;
    for (const auto& flag : field.flags) {
      if (op_.*flag.member) set.emplace_back(flag.name);
    }
    if (set.empty()) return;
    append(std::string(field.name) + "=[" + join(set, [](const auto& name) { return name; }) + "]");
  }

  const T& op_;
  const std::vector<Value>* values_;
  const T defaults_{};
  std::string text_;
};

std::string text_of(const std::optional<Gate>& gate) {
  return "{" + ArgumentPrinter<Gate>(*gate, nullptr).print() + "}";
}

std::string print_type(const ValueType& type) {
  return "[" + join(type.shape, [](Dim d) { return std::string(name_of(d)); }) + "] " +
         std::string(name_of(type.element));
}

std::string print_param(const ParamSpec& param) {
  const ParamSymbol& symbol = param.symbol;
  std::string text = "  param " + symbol.name + " : " + std::string(name_of(symbol.type));
  if (!symbol.shape.empty()) {
    text += "[" + join(symbol.shape, [](const ParamDim& d) { return name_of(d); }) + "]";
  }
  if (symbol.monotone) text += ", monotone=true";
  text += ", range=[" + digits(param.minimum) + ", " + digits(param.maximum) + "]";
  if (param.has_default) text += ", default=" + digits(param.default_value);
  return text + "\n";
}

std::string print_node(const Program& program, const Node& node) {
  const auto value = [&](int id) -> const Value& {
    return program.values[static_cast<std::size_t>(id)];
  };
  std::string text =
      "  " + join(node.results, [&](int id) { return "%" + value(id).name; }) + " = ";
  std::visit(
      [&]<class T>(const T& op) {
        const std::string arguments = ArgumentPrinter<T>(op, &program.values).print();
        text += std::string(Fields<T>::name) + (arguments.empty() ? "" : " ") + arguments;
      },
      node.op);
  text += " : " + join(node.results, [&](int id) { return print_type(value(id).type); });
  return text + "\n";
}

}  // namespace

std::string print_program(const Program& program) {
  std::string text =
      "program @" + program.name + "(head_dim=" + text_of(program.head_dim) +
      (value_dim(program) != program.head_dim ? ", head_dim_v=" + text_of(program.head_dim_v)
                                              : "") +
      ", dtype=" + text_of(program.dtype);
  if (program.batch != BatchLayout::kUniform) text += ", batch=" + text_of(program.batch);
  if (program.kv != KvFormat::kSame) text += ", kv=" + text_of(program.kv);
  text += ") {\n";
  for (const ParamSpec& param : program.params) text += print_param(param);
  for (const Node& node : program.nodes) text += print_node(program, node);
  return text + "}\n";
}

}  // namespace lacuna
