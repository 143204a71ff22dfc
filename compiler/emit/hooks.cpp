#include "compiler/emit/hooks.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/emit/hook_text.hpp"
#include "compiler/expr/bounds/open_reads.hpp"
#include "compiler/expr/parts/constant_divisors.hpp"
#include "compiler/expr/parts/constant_parts.hpp"
#include "compiler/expr/parts/element_parts.hpp"
#include "compiler/expr/parts/mask_parts.hpp"
#include "compiler/expr/parts/score_parts.hpp"
#include "compiler/expr/parts/shared_parts.hpp"
#include "compiler/lower/predict/keep.hpp"

namespace lacuna {
namespace {

/// The mask of one pair. If it divides, the divisors and the parameters that many pairs share are
/// read once: NVRTC would look up each of them for each of a lane's scores (natten: 13 s, not 4).
/// Of other masks nothing is kept: few tiles ask them, and registers are short.
void write_mask(CudaWriter& out, const Expr& mask) {
  const char* pointer = "/attention/mask";
  const std::vector<std::int32_t> divisors = constant_divisors(mask, kPairVariables);
  if (divisors.empty()) {
    write_hook(out, "bool mask(const Args& args, int q, int k, int h, int b)", pointer,
               cuda_body(mask, "true"));
    return;
  }
  const RowText text = split_text(mask, "part", "parts", constant_elements(mask, kPairVariables),
                                  divisors, cuda_names(Tiling::kAttend));
  write_row_struct(out, "MaskParts", text.members);
  write_hook(out, "MaskParts mask_parts(const Args& args, int h, int b)", pointer,
             "{" + text.values + "}");
  write_hook(out, "bool mask(const Args& args, const MaskParts& parts, int q, int k, int h, int b)",
             pointer, text.rest);
}

/// Whether the mask lets through all pairs of a tile, or any. A bound divides many times by the
/// same number, so its reciprocal is made once, and parameters are read once: fewer instructions,
/// of which NVRTC inlines each.
void write_tile_bound(CudaWriter& out, const std::string& name, const Expr& bound) {
  const char* pointer = "/attention/mask";
  const std::string signature =
      "bool " + name + "(const Args& args, " + kBounds + ", int h, int b)";
  const std::vector<std::int32_t> divisors = constant_divisors(bound, kBoundVariables);
  if (divisors.empty()) return write_hook(out, signature, pointer, cuda_body(bound, "true"));
  RowText text = split_text(bound, "part", "parts", constant_elements(bound, kBoundVariables),
                            divisors, cuda_names(Tiling::kAttend));
  text.rest.locals.insert(text.rest.locals.begin(),
                          "const struct {" + text.members + " } parts = {" + text.values + "};");
  write_hook(out, signature, pointer, text.rest);
}

bool reads_parameter(const Expr& expr) {
  return std::ranges::any_of(expr.nodes,
                             [](const ExprNode& node) { return node.op == ExprOp::kParameter; });
}

constexpr const char* kSourceNames[kMaskSources] = {"distance", "key", "query"};

/// "(of.distance[0] | of.key[0])": of words with a bit for each key.
std::string mask_words_text(const MaskParts& parts, std::size_t term) {
  const MaskTerm& root = parts.terms[term];
  const auto operand = [&](int place) {
    return mask_words_text(parts, static_cast<std::size_t>(place));
  };
  switch (root.op) {
    case ExprOp::kNot:
      return "~" + operand(root.left);
    case ExprOp::kAnd:
    case ExprOp::kOr:
      return "(" + operand(root.left) + (root.op == ExprOp::kAnd ? " & " : " | ") +
             operand(root.right) + ")";
    default:
      return "of." + std::string(kSourceNames[static_cast<std::size_t>(root.source)]) + "[" +
             std::to_string(root.left) + "]";
  }
}

/// The conditions that hold besides ranges, in the same two steps, and what joins them.
void write_conditions(CudaWriter& out, const MaskParts& parts) {
  const char* pointer = "/attention/mask";
  std::string members, values, words;
  std::vector<std::pair<std::string, CudaBody>> hooks;  // the beginning of the signature
  for (std::size_t s = 0; s < kMaskSources; ++s) {
    const std::string source = kSourceNames[s];
    const std::vector<Expr>& conditions = parts.conditions[s];
    for (std::size_t n = 0; n < conditions.size(); ++n) {
      const RowText text =
          split_text(conditions[n], source + std::to_string(n), "parts",
                     constant_elements(conditions[n], kPairVariables),
                     constant_divisors(conditions[n], kPairVariables), cuda_names(Tiling::kAttend));
      members += text.members;
      values += (values.empty() || text.values.empty() ? "" : ", ") + text.values;
      hooks.emplace_back("bool mask_of_" + source + "(const Args& args, lacuna::Constant<" +
                             std::to_string(n) + ">",
                         text.rest);
    }
    if (!conditions.empty())
      words += " unsigned " + source + "[" + std::to_string(conditions.size()) + "];";
  }
  write_row_struct(out, "ConditionParts", members);
  write_hook(out, "ConditionParts condition_parts(const Args& args, int h, int b)", pointer,
             "{" + values + "}");
  for (const auto& [signature, body] : hooks)
    write_hook(out, signature + ", const ConditionParts& parts, int q, int k, int h, int b)",
               pointer, body);
  write_row_struct(out, "MaskWords", words);
  write_hook(out, "unsigned mask_words(const MaskWords& of)", pointer,
             mask_words_text(parts, parts.terms.size() - 1));
}

/// What MaskRow says of conditions: how many there are of each source, and whether bounds of a tile
/// leave most tiles to them.
std::string condition_flags(const MaskParts& parts, const Expr& mask) {
  if (parts.terms.empty()) return "";
  const auto count = [&](MaskSource source) { return std::to_string(parts.of(source).size()); };
  const auto flag = [](bool is_set) { return is_set ? "true" : "false"; };
  const bool is_loose = !open_reads(mask).empty() || !loose_part(mask).empty();
  return std::string(" static constexpr bool kHasConditions = true, kIsOfDistance = ") +
         flag(parts.is_of_distance()) + ", kCutsMostTiles = " + flag(is_loose) +
         "; static constexpr int kDistances = " + count(MaskSource::kDistance) +
         ", kKeys = " + count(MaskSource::kKey) + ", kQueries = " + count(MaskSource::kQuery) + ";";
}

/// The keys that a row sees, as ranges (compiler/expr/parts/mask_parts.hpp), and the conditions
/// that hold besides; no range: the mask has to be asked.
void write_mask_parts(CudaWriter& out, const Expr& mask) {
  const MaskParts parts = split_mask(mask);
  const std::string count = std::to_string(parts.ranges.size());
  std::string has_first, first, last;
  bool reads_parameters = false;
  for (const KeyRange& range : parts.ranges) {
    const char* comma = first.empty() ? "" : ", ";
    has_first += comma + std::string(range.first.empty() ? "false" : "true");
    first += comma + cuda_text(range.first, "0");
    last += comma + cuda_text(range.last, "args.attend.n_k - 1");
    reads_parameters =
        reads_parameters || reads_parameter(range.first) || reads_parameter(range.last);
  }
  std::string members =
      " static constexpr int kRanges = " + count +
      "; static constexpr bool kReadsParameters = " + (reads_parameters ? "true" : "false") + ";" +
      condition_flags(parts, mask);
  if (!parts.ranges.empty()) {
    members += " static constexpr bool kHasFirst[] = {" + has_first + "}; int first[" + count +
               "], last[" + count + "];";
  }
  write_row_struct(out, "MaskRow", members);
  write_hook(out, "MaskRow mask_row(const Args& args, int q, int h, int b)", "/attention/mask",
             parts.ranges.empty() ? "{}" : "{{" + first + "}, {" + last + "}}");
  if (!parts.terms.empty()) write_conditions(out, parts);
}

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

/// Where an element of a table lies that a score's rest reads.
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
/// left for each score, or for each distance and key (shared_parts.hpp), and elements that lie on a
/// line or have places of the row and of the key (element_parts.hpp).
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

void write_attend_hooks(CudaWriter& out, const Attend& attend) {
  write_mask(out, attend.mask);
  write_mask_parts(out, attend.mask);
  write_tile_bound(out, "tile_full", attend.classifier.must);
  write_tile_bound(out, "tile_visible", attend.classifier.may);
  write_hook(out, "float score(const Args& args, float s, int q, int k, int h, int b)",
             "/attention/score",
             attend.score.empty() ? "s" : print_cuda_body(attend.score, score_names()));
  if (!attend.score.empty()) write_score_parts(out, attend.score);
  if (attend.sink.empty()) return;
  write_hook(out, "float sink(const Args& args, int q, int h, int b)", "/attention/sink",
             cuda_body(attend.sink, ""));
}

void write_branch_hooks(CudaWriter& out, const Program& program) {
  if (const Means* means = key_means(program))
    write_hook(out, "int key_tokens(const Args& args)", "/means",
               means->tokens == 1 ? "args.attend.n_k"
                                  : "args.param_" + std::string(kTokensParam) + ".value");
  if (query_means(program) != nullptr)
    write_hook(out, "int query_tokens(const Args& args)", "/query_means",
               "args.param_" + std::string(kQueriesParam) + ".value");
  const auto* merge = find_op<MergeBranch>(program);
  if (merge == nullptr || merge->weight.empty()) return;
  write_hook(out, "float branch_weight(const Args& args, int q, int h, int b)", "/weight",
             cuda_body(merge->weight, ""));
}

void write_gate_hooks(CudaWriter& out, const std::optional<Gate>& gate) {
  const Gate given = gate.value_or(Gate{});
  const RowText skip = row_text(given.skip, "skip", kTileVariables, "false");
  const RowText exempt = row_text(given.exempt, "exempt", kTileVariables, "false");
  const bool has_both = !skip.values.empty() && !exempt.values.empty();
  write_row_struct(out, "GateRow", skip.members + exempt.members);
  write_hook(out, "GateRow gate_row(const Args& args, int i, int q0, int q1, int h, int b)",
             "/gate/skip", "{" + skip.values + (has_both ? ", " : "") + exempt.values + "}");
  CudaBody gated = skip.rest;
  if (exempt.rest.value != "false") {
    gated.value = "(" + skip.rest.value + ") && !(" + exempt.rest.value + ")";
    std::ranges::copy(exempt.rest.locals, std::back_inserter(gated.locals));
  }
  write_hook(
      out,
      std::string(
          "bool gate_skip(const Args& args, const GateRow& row, float tile_max, float gap, ") +
          kIndices + ")",
      "/gate/skip", gated);
}

void write_index_hooks(CudaWriter& out, const Estimate& estimate) {
  const auto text = [](const Expr& expr) { return cuda_body(expr, "1.0f", Tiling::kPredictor); };
  write_hook(out, "float index_q(const Args& args, int index_h, int q, int index_d, int h, int b)",
             "/predictor/estimate/index/q", text(estimate.index_q));
  write_hook(out, "float index_k(const Args& args, int k, int index_d, int b)",
             "/predictor/estimate/index/k", text(estimate.index_k));
  write_hook(out, "float index_weight(const Args& args, int index_h, int q, int h, int b)",
             "/predictor/estimate/index/weight", text(estimate.index_weight));
}

void write_estimate_hooks(CudaWriter& out, const Estimate& estimate) {
  const char* reference = "/predictor/estimate/reference";
  const std::string bounds = std::string("(const Args& args, ") + kBounds + ")";
  write_hook(out, "bool reference(const Args& args, int q, int k)", reference,
             cuda_body(estimate.reference, "true"));
  write_hook(out, "bool reference_full" + bounds, reference,
             cuda_body(estimate.reference_classifier.must, "true"));
  write_hook(out, "bool reference_possible" + bounds, reference,
             cuda_body(estimate.reference_classifier.may, "true"));
  write_hook(out,
             std::string("bool exclude(const Args& args, float similar_q, float similar_k, ") +
                 kIndices + ")",
             "/predictor/estimate/exclude",
             cuda_body(estimate.exclude, "false", Tiling::kPredictor));
  if (estimate.is_indexed()) write_index_hooks(out, estimate);
  if (!estimate.is_given()) return;
  write_hook(out, std::string("float score_of(const Args& args, ") + kIndices + ")",
             "/predictor/estimate/from", cuda_body(estimate.from, "", Tiling::kPredictor));
}

/// What `keep` asks of one variable, apart from a tile's place.
void write_condition_hook(CudaWriter& out, const std::string& name, const std::string& variable,
                          const std::optional<Expr>& condition) {
  if (!condition) return;
  write_hook(out,
             "bool " + name + "(const Args& args, " + variable +
                 ", float similar_q, int i, int q0, int q1, int h, int b)",
             "/predictor/keep", cuda_body(*condition, "true", Tiling::kPredictor));
}

void write_select_hooks(CudaWriter& out, const Select& select, const KeepQuestion& keep) {
  const RowText parts =
      row_text(select.keep, "keep", kKeepVariables, "true", cuda_names(Tiling::kPredictor));
  const char* comma = keep.p_max && !parts.values.empty() ? ", " : "";
  write_row_struct(out, "KeepParts", (keep.p_max ? " float p_max;" : "") + parts.members);
  write_hook(out, "KeepParts keep_parts(const Args& args, int i, int q0, int q1, int h, int b)",
             "/predictor/keep",
             "{" + std::string(keep.p_max ? "0.0f" : "") + comma + parts.values + "}");
  write_hook(out,
             std::string("bool keep(const Args& args, const KeepParts& row, float score, float p, "
                         "int rank, float mass_before, int visible, float similar_q, float "
                         "similar_k, ") +
                 kIndices + ")",
             "/predictor/keep", parts.rest);
  write_condition_hook(out, "keep_rank", "int rank, int visible", keep.rank_condition);
  write_condition_hook(out, "keep_p", "float p", keep.p_condition);
}

void write_step_hooks(CudaWriter& out, const Plan& plan, const PredictStep& step) {
  if (step.estimate != nullptr) write_estimate_hooks(out, *step.estimate);
  write_select_hooks(out, *step.select, keep_question(plan, step));
}

}  // namespace

void write_hooks(CudaWriter& out, const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  const std::vector<PredictStep> steps = predict_steps(plan.program);
  out.line("");
  out.line("struct Hooks {");
  write_attend_hooks(out, attend);
  write_gate_hooks(out, attend.gate);
  write_branch_hooks(out, plan.program);
  if (!steps.empty()) write_step_hooks(out, plan, steps.back());
  out.generated_line("};");
  if (steps.size() < 2) return;
  out.line("struct HooksBefore : Hooks {");
  write_step_hooks(out, plan, steps.front());
  out.generated_line("};");
}

}  // namespace lacuna
