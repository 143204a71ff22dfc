#include "tools/verbs/explain_code.hpp"

#include <charconv>

#include "compiler/ir/program.hpp"
#include "compiler/spec/table/fields.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

bool has_legal_values(SpecFieldKind kind) {
  return kind != SpecFieldKind::kObject && kind != SpecFieldKind::kText &&
         kind != SpecFieldKind::kExpression && kind != SpecFieldKind::kBoolean;
}

bool raises(const SpecField& field, Code code) {
  if (code == Code::kOutOfRange) return has_legal_values(field.kind);
  return code == Code::kMissingField && field.required;
}

std::string plain(std::string markdown) {
  std::erase(markdown, '`');
  return markdown;
}

void explain_fields(Code code, Session& session) {
  const bool is_missing = code == Code::kMissingField;
  Table table{.head = {"field", "legal values", is_missing ? "meaning" : "because"}, .rows = {}};
  for (const SpecField& field : spec_fields()) {
    if (!raises(field, code)) continue;
    const std::string values = plain(values_text(field));
    table.rows.push_back(
        {shown_path(field), values, std::string(is_missing ? field.doc : field.why)});
    session.document["fields"].push_back(
        {{"path", shown_path(field)}, {"values", values}, {"doc", field.doc}, {"why", field.why}});
  }
  if (!table.rows.empty()) session.print("\n" + print_table(table, session.color_stdout()));
}

void explain_rules(Session& session) {
  std::string text = "\n";
  for (const std::string_view rule : verifier_rules()) {
    text += "  " + std::string(rule) + "\n";
    session.document["rules"].push_back(rule);
  }
  session.print(text);
}

}  // namespace

std::optional<int> code_number(const std::string& subject) {
  int number = 0;
  if (subject.size() < 2 || (subject.front() != 'E' && subject.front() != 'e')) return std::nullopt;
  const char* end = subject.data() + subject.size();
  const auto parsed = std::from_chars(subject.data() + 1, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

void explain_code(int number, Session& session) {
  const Code code = static_cast<Code>(number);
  const std::string_view summary = code_summary(code);
  if (summary.empty()) {
    session.fail(ExitCode::kInput, "there is no code " + code_name(code));
    return;
  }
  session.document["code"] = code_name(code);
  session.document["subject"] = code_subject(code);
  session.document["summary"] = summary;
  session.print(code_name(code) + " (" + std::string(code_subject(code)) +
                "): " + std::string(summary) + "\n");
  const Explanation explanation = explanation_of(code);
  session.document["cause"] = explanation.cause;
  session.document["example"] = explanation.example;
  session.document["cure"] = explanation.cure;
  session.print("  cause    " + std::string(explanation.cause) + "\n  example  " +
                std::string(explanation.example) + "\n  cure     " + std::string(explanation.cure) +
                "\n");
  explain_fields(code, session);
  if (code == Code::kProgramRule) explain_rules(session);
}

}  // namespace lacuna::tools
