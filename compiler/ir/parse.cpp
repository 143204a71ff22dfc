// Text -> Program, from the field tables. Hand-written, one line at a time: a bad line is reported
// and the next one is read, so all errors of a text appear in one run.
#include "compiler/expr/text/parse.hpp"

#include <map>
#include <utility>

#include "compiler/ir/fields.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/ir/text_reader.hpp"
#include "compiler/spec/declared_ranges.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

/// What is known while reading an op: the cursor, the values and parameters defined so far.
struct ParseContext {
  TextReader& reader;
  std::map<std::string, int, std::less<>> values;
  std::vector<ParamSymbol> symbols;
};

void read(ParseContext& context, int& x) { x = context.reader.integer("an integer"); }
void read(ParseContext& context, float& x) { x = context.reader.number_f32("a number"); }
void read(ParseContext& context, std::string& x) { x = context.reader.quoted("a quoted string"); }

void read(ParseContext& context, bool& x) {
  x = context.reader.accept("true");
  if (!x && !context.reader.accept("false")) context.reader.fail_expected("true or false");
}

template <class E>
requires std::is_enum_v<E>
void read(ParseContext& context, E& x) {
  TextReader& reader = context.reader;
  const std::size_t begin = reader.position();
  const std::string_view name = reader.word("one of " + all_names<E>());
  const std::optional<E> found = find_by_name<E>(name);
  if (found) {
    x = *found;
  } else {
    reader.fail(Code::kProgramSyntax,
                "expected one of " + all_names<E>() + ", got '" + std::string(name) + "'",
                reader.span(begin, begin + name.size()));
  }
}

/// "mean", "tokens", "antidiagonal(8)", "last(64)".
void read(ParseContext& context, Summary& summary) {
  TextReader& reader = context.reader;
  const std::size_t begin = reader.position();
  std::string text{reader.word("a summary")};
  if (reader.accept("(")) {
    text += "(" + std::to_string(reader.integer("a number of tokens")) + ")";
    reader.expect(")");
  }
  if (reader.failed()) return;
  if (const std::optional<Summary> found = parse_summary(text)) {
    summary = *found;
  } else {
    reader.fail(Code::kProgramSyntax, "expected " + all_forms() + ", got '" + text + "'",
                reader.span(begin, begin + text.size()));
  }
}

/// "heads", or an extent: "32".
void read(ParseContext& context, ParamDim& dim) {
  TextReader& reader = context.reader;
  const std::size_t begin = reader.position();
  const std::string_view word = reader.word("a dimension");
  if (reader.failed()) return;
  if (const std::optional<ParamDim> found = parse_dim(word)) {
    dim = *found;
  } else {
    reader.fail(Code::kProgramSyntax,
                "expected the name of a dimension or an extent, got '" + std::string(word) + "'",
                reader.span(begin, begin + word.size()));
  }
}

/// After "[": items up to the closing bracket.
template <class E>
std::vector<E> read_list(ParseContext& context) {
  std::vector<E> items;
  if (context.reader.accept("]")) return items;
  do {
    read(context, items.emplace_back());
  } while (context.reader.accept(","));
  context.reader.expect("]");
  return items;
}

int read_operand(ParseContext& context) {
  TextReader& reader = context.reader;
  const std::size_t begin = reader.position();
  reader.expect("%");
  const std::string name{reader.word("a value's name")};
  const auto found = context.values.find(name);
  if (found != context.values.end()) return found->second;
  std::vector<std::string> known;
  known.reserve(context.values.size());
  for (const auto& [value, id] : context.values) known.push_back(value);
  const std::string nearest = nearest_word(name, known);
  reader.fail(
      Code::kProgramSyntax, "%" + name + " is not defined above",
      reader.span(begin, begin + name.size() + 1), {},
      nearest.empty() ? std::vector<std::string>{} : std::vector{"did you mean %" + nearest + "?"});
  return -1;
}

Expr read_formula(ParseContext& context, Site site) {
  TextReader& reader = context.reader;
  const std::size_t begin = reader.position() + 1;  // after the quote
  const std::string text = reader.quoted("a formula in quotes");
  if (reader.failed()) return {};
  ParsedExpr parsed = parse_expr(text, site, context.symbols);
  for (const ExprError& error : parsed.errors) {
    reader.fail(error.code, error.message, reader.span(begin + error.begin, begin + error.end),
                error.notes, error.helps);
  }
  return std::move(parsed.expr);
}

template <class T>
T read_arguments(ParseContext& context, std::string_view end);

void read(ParseContext& context, std::optional<Gate>& gate) {
  context.reader.expect("{");
  gate = read_arguments<Gate>(context, "}");
  context.reader.expect("}");
}

/// Reads the value of the field called `name`, if this field is it.
template <class T>
struct FieldReader {
  ParseContext& context;
  std::string_view name;
  T& op;
  bool found = false;

  void operator()(const Operand<T>& field) {
    if (take(!field.positional && field.name == name)) op.*field.member = read_operand(context);
  }
  template <class V>
  void operator()(const Attribute<T, V>& field) {
    if (take(field.name == name)) read(context, op.*field.member);
  }
  void operator()(const Formula<T>& field) {
    if (take(field.name == name)) op.*field.member = read_formula(context, field.site);
  }
  template <std::size_t N>
  void operator()(const Flags<T, N>& field) {
    if (!take(field.name == name)) return;
    context.reader.expect("[");
    do {
      const std::size_t begin = context.reader.position();
      const std::string_view word = context.reader.word("the name of a flag");
      bool known = false;
      for (const auto& flag : field.flags) {
        if (flag.name != word) continue;
        op.*flag.member = known = true;
      }
      if (!known) {
        context.reader.fail(Code::kProgramSyntax,
                            "'" + std::string(word) + "' is not a flag of " + std::string(name),
                            context.reader.span(begin, begin + word.size()));
      }
    } while (context.reader.accept(","));
    context.reader.expect("]");
  }

 private:
  bool take(bool is_this_field) {
    found = found || is_this_field;
    return is_this_field;
  }
};

template <class T>
void read_named_argument(ParseContext& context, T& op) {
  TextReader& reader = context.reader;
  const std::size_t begin = reader.position();
  const std::string_view name = reader.word("a field's name");
  reader.expect("=");
  if (reader.failed()) return;
  FieldReader<T> field_reader{context, name, op};
  for_each_field<T>(field_reader);
  if (field_reader.found) return;
  std::vector<std::string> known;
  for_each_field<T>([&](const auto& field) { known.emplace_back(field.name); });
  const std::string nearest = nearest_word(name, known);
  reader.fail(Code::kProgramSyntax, "there is no field '" + std::string(name) + "'",
              reader.span(begin, begin + name.size()), {},
              nearest.empty() ? std::vector<std::string>{}
                              : std::vector{"did you mean '" + nearest + "'?"});
}

/// Positional operands in order, then named arguments, up to (not including) `end`.
template <class T>
T read_arguments(ParseContext& context, std::string_view end) {
  TextReader& reader = context.reader;
  T op;
  bool first = true;
  const bool has_operands = reader.next_is("%");
  const auto separator = [&]() -> bool {
    return std::exchange(first, false) || reader.expect(",");
  };
  for_each_field<T>([&](const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const Operand<T>&>) {
      const bool stands = field.required || (field.positional && has_operands);
      if (stands && separator()) op.*field.member = read_operand(context);
    }
  });
  while (!reader.failed() && !reader.next_is(end) && separator()) read_named_argument(context, op);
  return op;
}

void read_type(ParseContext& context, ValueType& type) {
  context.reader.expect("[");
  type.shape = read_list<Dim>(context);
  read(context, type.element);
}

/// Reads the arguments of the op called `name`; false if there is no such op.
template <std::size_t I = 0>
bool read_op(ParseContext& context, std::string_view name, Op& op) {
  if constexpr (I == std::variant_size_v<Op>) {
    return false;
  } else {
    using T = std::variant_alternative_t<I, Op>;
    if (Fields<T>::name != name) return read_op<I + 1>(context, name, op);
    op = read_arguments<T>(context, ":");
    return true;
  }
}

void read_node(ParseContext& context, Program& program) {
  TextReader& reader = context.reader;
  std::vector<std::string> results;
  do {
    reader.expect("%");
    results.emplace_back(reader.word("a value's name"));
  } while (reader.accept(","));
  reader.expect("=");
  const std::size_t begin = reader.position();
  const std::string_view name = reader.word("the name of an op");
  if (reader.failed()) return;
  Node node;
  if (!read_op(context, name, node.op)) {
    reader.fail(Code::kProgramSyntax, "there is no op '" + std::string(name) + "'",
                reader.span(begin, begin + name.size()));
  }
  std::vector<ValueType> types(results.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    reader.expect(r == 0 ? ":" : ",");
    read_type(context, types[r]);
  }
  // Results of a bad line are defined all the same, so that uses of them are not errors too.
  for (std::size_t r = 0; r < results.size(); ++r) {
    const int id = static_cast<int>(program.values.size());
    context.values.insert_or_assign(results[r], id);
    program.values.push_back({results[r], std::move(types[r])});
    node.results.push_back(id);
  }
  derive_classifiers(node.op);
  program.nodes.push_back(std::move(node));
}

/// After "param".
void read_param(ParseContext& context, Program& program) {
  TextReader& reader = context.reader;
  ParamSpec param{};
  param.symbol.name = reader.word("a parameter's name");
  reader.expect(":");
  read(context, param.symbol.type);
  if (reader.accept("[")) param.symbol.shape = read_list<ParamDim>(context);
  while (reader.accept(",")) {
    if (reader.accept("monotone=")) {
      read(context, param.symbol.monotone);
    } else if (reader.accept("range=[")) {
      param.minimum = reader.number("the lowest legal value");
      reader.expect(",");
      param.maximum = reader.number("the highest legal value");
      note_declared_range(param);
      reader.expect("]");
    } else if (reader.accept("default=")) {
      param.default_value = reader.number("the default value");
      param.has_default = true;
    } else {
      reader.fail_expected("monotone=, range=[ or default=");
    }
  }
  context.symbols.push_back(param.symbol);
  program.params.push_back(std::move(param));
}

void read_header(ParseContext& context, Program& program) {
  TextReader& reader = context.reader;
  reader.expect("program");
  reader.expect("@");
  program.name = reader.word("the program's name", "_-.");
  reader.expect("(");
  reader.expect("head_dim=");
  read(context, program.head_dim);
  reader.expect(",");
  if (reader.accept("head_dim_v=")) {
    read(context, program.head_dim_v);
    reader.expect(",");
  }
  reader.expect("dtype=");
  read(context, program.dtype);
  bool goes_on = reader.accept(",");
  if (goes_on && reader.accept("batch=")) {
    read(context, program.batch);
    goes_on = reader.accept(",");
  }
  if (goes_on) {
    reader.expect("kv=");
    read(context, program.kv);
  }
  reader.expect(")");
  reader.expect("{");
  reader.expect_line_end();
}

}  // namespace

Program parse_program(const SourceText& source, Diagnostics& diagnostics) {
  TextReader reader(source.text, diagnostics);
  ParseContext context{reader, {}, {}};
  Program program;
  bool closed = false;
  if (reader.next_line()) read_header(context, program);
  while (!closed && reader.next_line()) {
    if (reader.accept("}")) {
      closed = true;
    } else if (reader.accept("param ")) {
      read_param(context, program);
    } else {
      read_node(context, program);
    }
    reader.expect_line_end();
  }
  if (!closed) {
    reader.fail_expected("'}' at the end of the program");
  } else if (reader.next_line()) {
    reader.fail_expected("nothing after the program's '}'");
  }
  return program;
}

}  // namespace lacuna
