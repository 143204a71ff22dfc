// The field table as a Markdown reference.
#include "compiler/expr/expr_tables.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/spec/summary.hpp"
#include "compiler/spec/table/fields.hpp"

namespace lacuna {
namespace {

std::string names_text(const SpecField& field) {
  std::string out;
  for (const std::string_view name : field.names)
    out.append(out.empty() ? "`\"" : ", `\"").append(name).append("\"`");
  return out;
}

std::string summaries_text(const SpecField& field) {
  std::string out;
  for (const SummaryInfo& row : summaries_of(field.side))
    out.append(out.empty() ? "`\"" : ", `\"").append(form_of(row.kind)).append("\"`");
  for (const SummaryInfo& row : summaries_of(field.side))
    if (row.first != 0) out.append("; n of ").append(row.name).append(": ").append(row.counts);
  return out;
}

std::string token_order_text(const SpecField& field) {
  std::string out = names_text(field);
  for (const std::string_view grid : field.grids)
    out.append(", `{\"").append(grid).append("\": [T, H, W]}`");
  return out + "; beside a grid `\"" + std::string(kCubesKey) + "\": [t, h, w]`";
}

std::string value_text(const SpecField& field) {
  switch (field.kind) {
    case SpecFieldKind::kObject:
      return "object";
    case SpecFieldKind::kParams:
      return "object of parameters";
    case SpecFieldKind::kLet:
      return "object of expressions";
    case SpecFieldKind::kBranches:
      return "list of 2 to " + std::to_string(kMostBranches) + " objects";
    case SpecFieldKind::kAsRoot:
      return "as `" + std::string(key_of(field)) + "`";
    case SpecFieldKind::kText:
      return "text";
    case SpecFieldKind::kName:
      return "name";
    case SpecFieldKind::kExpression:
      return "expression";
    case SpecFieldKind::kShape:
      return "shape";
    case SpecFieldKind::kBoolean:
      return "`true`, `false`";
    case SpecFieldKind::kInteger:
      return integers_text(field);
    case SpecFieldKind::kNumber:
      return field.maximum < std::numeric_limits<float>::max()
                 ? "positive number up to " + std::to_string(static_cast<int>(field.maximum))
                 : "positive number";
    case SpecFieldKind::kBound:
      return "number, `\"inf\"`, `\"-inf\"`";
    case SpecFieldKind::kRange:
      return "`[least, greatest]`";
    case SpecFieldKind::kEnum:
      return names_text(field);
    case SpecFieldKind::kSubset:
      return "list of " + names_text(field);
    case SpecFieldKind::kSummary:
      return summaries_text(field);
    case SpecFieldKind::kBands:
      return "`\"FIRST:END,...\"`, multiples of 16 up to 256";
    case SpecFieldKind::kTokenOrder:
      return token_order_text(field);
  }
  return "";
}

std::string plural_text(const SpecField& field) {
  switch (field.plural) {
    case Plural::kOne:
      return "";
    case Plural::kOrAuto:
      return "; `\"auto\"`";
    case Plural::kOrListOrAuto:
      return "; list; `\"auto\"`";
  }
  return "";
}

std::string fields_table() {
  std::string out = "| field | values | if absent | meaning |\n|---|---|---|---|\n";
  for (const SpecField& field : spec_fields()) {
    const std::string absent(field.required ? "an error" : field.fallback);
    out += "| `" + shown_path(field) + "` | " + values_text(field) + " | " + absent + " | " +
           std::string(field.doc) + " |\n";
  }
  return out;
}

/// The fields whose expressions may read a variable.
std::string readers_of(Variable variable) {
  std::string out;
  for (const SpecField& field : spec_fields())
    if (field.kind == SpecFieldKind::kExpression && field.site != Site::kLet &&
        offers(field.site, variable))
      out.append(out.empty() ? "`" : ", `").append(shown_path(field)).append("`");
  return out;
}

std::string variables_table() {
  std::string out = "| variable | type | meaning | may be read in |\n|---|---|---|---|\n";
  for (const VariableInfo& variable : all_variables()) {
    const std::string readers = readers_of(variable.variable);
    if (readers.empty()) continue;
    out.append("| `").append(variable.name).append("` | ").append(name_of(variable.type));
    out.append(" | ").append(variable.doc).append(" | ").append(readers).append(" |\n");
  }
  return out;
}

std::string operators_table() {
  std::string out = "| operator | meaning |\n|---|---|\n";
  for (const OperatorInfo& row : all_operators())
    if (row.notation != Notation::kNone)
      out.append("| `").append(row.spelling).append("` | ").append(row.doc).append(" |\n");
  return out;
}

/// Signs and words between operands, those that bind tighter first.
std::string precedence_text() {
  std::string out =
      "Numbers are decimal; `true`, `false` and `inf` are words. What binds tighter comes first:";
  for (int level = kPrecedenceUnary; level >= kPrecedenceOr; --level) {
    std::string signs;
    for (const OperatorInfo& row : all_operators()) {
      const bool is_sign = row.notation == Notation::kInfix || row.notation == Notation::kPrefix;
      if (is_sign && row.precedence == level) signs.append(" `").append(row.spelling).append("`");
    }
    out += signs + (level > kPrecedenceOr ? ";" : ". ");
  }
  return out + "Comparisons do not chain. `m[q] & 1 == 1` asks a bit.\n";
}

}  // namespace

std::string shown_path(const SpecField& field) {
  std::string out(field.path);
  const std::size_t star = out.find(".*");
  if (star == std::string::npos) return out;
  return out.replace(star, 2, out.starts_with("branches") ? "[N]" : ".NAME");
}

std::string values_text(const SpecField& field) { return value_text(field) + plural_text(field); }

std::string spec_reference() {
  return "### Fields\n\n" + fields_table() + "\n### Variables of expressions\n\n" +
         variables_table() + "\n### Operators and functions\n\n" + operators_table() + "\n" +
         precedence_text();
}

}  // namespace lacuna
