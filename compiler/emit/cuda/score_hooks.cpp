#include "compiler/emit/cuda/score_hooks.hpp"

#include <utility>

#include "compiler/emit/cuda/hook_text.hpp"
#include "compiler/expr/parts/costly_formulas.hpp"
#include "compiler/expr/parts/element_parts.hpp"
#include "compiler/expr/parts/score_parts.hpp"
#include "compiler/expr/parts/shared_parts.hpp"

namespace lacuna {
namespace {

/// What a row has of its scores.
void write_score_row(CudaWriter& out, const ScoreParts& parts, const SharedParts& shared,
                     const std::vector<ElementPart>& elements, const std::string& members) {
  std::string flags;
  for (const auto& [name, is_set] :
       {std::pair{"kHasCore", !parts.core.empty()}, std::pair{"kHasOffset", !parts.offset.empty()},
        std::pair{"kHasSlope", !parts.slope.empty()}, std::pair{"kHasRest", !parts.rest.empty()},
        std::pair{"kRestHasDistance", !shared.of_distance.empty()},
        std::pair{"kRestHasKey", !shared.of_key.empty()}})
    flags += (flags.empty() ? "" : ", ") + std::string(name) + (is_set ? " = true" : " = false");
  out.generated_line("  struct ScoreRow {");
  out.generated_line("    static constexpr bool " + flags + ";");
  if (parts.rest_is_inside) out.generated_line("    static constexpr bool kRestIsInside = true;");
  const FormulaLengths lengths = formula_lengths(parts);
  for (const auto& [name, is_set] : {std::pair{"kIsCostly", lengths.is_costly()},
                                     std::pair{"kIndicesAreCostly", lengths.has_costly_indices()}})
    if (is_set) out.generated_line("    static constexpr bool " + std::string(name) + " = true;");
  out.generated_line("    static constexpr int kElements = " + std::to_string(elements.size()) +
                     ";");
  std::string along;
  for (const ElementPart& part : elements)
    along += (along.empty() ? "" : ", ") + std::to_string(part.line ? part.line->along_k : 0);
  if (!elements.empty())
    out.generated_line("    static constexpr int kElementAlongK[] = {" + along + "};");
  out.generated_line("    float factor; float slope;" + members);
  out.generated_line("  };");
}

/// The functions by which a kernel finds element `number` of a formula in its table: by all indices
/// (`element`), and either along a line of keys or by indices of the row plus indices of the key.
void write_element(CudaWriter& out, const ElementPart& part, int number, const CudaNames& names) {
  const auto write = [&](const std::string& name, const char* tokens, const std::string& value) {
    write_hook(out,
               name + "(lacuna::Constant<" + std::to_string(number) + ">, const Args& args, " +
                   tokens + ", int h, int b)",
               "/attention/score", value);
  };
  const std::string element = print_cuda_element(part.element, names);
  write("float element", "int q, int k", "lacuna::at(" + element + ")");
  if (part.line) {
    write("lacuna::TableLine element_line", "int q, int k",
          "lacuna::line_at<" + std::to_string(part.line->dim) + ">(" + element + ")");
    return;
  }
  const auto indices_of = [&](Expr IndexParts::*of) {
    std::string text;
    for (const IndexParts& index : part.indices)
      text += (text.empty() ? "{{" : ", ") + print_cuda(index.*of, names);
    return text + "}}";
  };
  const std::string type = "lacuna::Indices<" + std::to_string(part.indices.size()) + "> ";
  write(type + "element_row", "int q", indices_of(&IndexParts::of_row));
  write(type + "element_key", "int k", indices_of(&IndexParts::of_key));
  const ExprNode& root = part.element.root();
  write_hook(out,
             "const auto& element_table(lacuna::Constant<" + std::to_string(number) +
                 ">, const Args& args)",
             "/attention/score", names.parameter(part.element.parameters[root.symbol]));
}

/// A score taken apart (compiler/expr/parts/score_parts.hpp): what a row has of it, and what is
/// left for each score, or for each distance and key (shared_parts.hpp), and the elements of tables
/// that are found by a line of keys, or by indices of the row plus indices of the key
/// (element_parts.hpp).
void write_score_parts(CudaWriter& out, const Expr& score) {
  const ScoreParts parts = split_score(score);
  const SharedParts shared =
      shared_parts(parts.rest)
          .value_or(SharedParts{.of_distance = {}, .of_key = {}, .rest = parts.rest});
  const ElementParts elements = element_parts(shared.rest);
  const CudaNames names = score_names();
  const RowText core = row_text(parts.core, "core", kScoreVariables, "s", names);
  const RowText offset = row_text(parts.offset, "offset", kScoreVariables, "0.0f", names);
  const RowText distance = row_text(shared.of_distance, "distance", kScoreVariables, "0.0f", names);
  const RowText key = row_text(shared.of_key, "key", kScoreVariables, "0.0f", names);
  const RowText rest = row_text(elements.rest, "rest", kScoreVariables, "0.0f", names);
  std::string members;
  std::string values = cuda_text(parts.factor, "1.0f") + ", " + cuda_text(parts.slope, "0.0f");
  for (const RowText* text : {&core, &offset, &distance, &key, &rest}) {
    members += text->members;
    if (!text->values.empty()) values += ", " + text->values;
  }
  write_score_row(out, parts, shared, elements.parts, members);
  write_hook(out, "ScoreRow score_row(const Args& args, int q, int h, int b)", "/attention/score",
             "{" + values + "}");
  const auto write = [&](const Expr& part, const char* name, const char* own, const RowText& text) {
    if (part.empty()) return;
    write_hook(out,
               std::string("float ") + name + "(const Args& args, const ScoreRow& row, " + own +
                   "int q, int k, int h, int b)",
               "/attention/score", text.rest);
  };
  write(parts.core, "score_core", "float s, ", core);
  write(parts.offset, "score_offset", "", offset);
  write(shared.of_distance, "score_of_distance", "", distance);
  write(shared.of_key, "score_of_key", "", key);
  write(shared.rest, "score_rest", "float s, float p, float score, float mass_before, ", rest);
  int number = 0;
  for (const ElementPart& part : elements.parts) write_element(out, part, number++, names);
}

}  // namespace

void write_score_hooks(CudaWriter& out, const Expr& score) {
  write_hook(out, "float score(const Args& args, float s, int q, int k, int h, int b)",
             "/attention/score", score.empty() ? "s" : print_cuda_body(score, score_names()));
  if (!score.empty()) write_score_parts(out, score);
}

}  // namespace lacuna
