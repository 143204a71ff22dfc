#include "compiler/emit/cuda/hooks.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/emit/cuda/hook_text.hpp"
#include "compiler/emit/cuda/mask_hooks.hpp"
#include "compiler/emit/cuda/score_hooks.hpp"
#include "compiler/expr/vector_read.hpp"
#include "compiler/lower/predict/keep.hpp"

namespace lacuna {
namespace {

void write_attend_hooks(CudaWriter& out, const Attend& attend) {
  write_mask_hooks(out, attend);
  write_score_hooks(out, attend.score);
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

/// Where keys of an index are vectors of a parameter: whether, and where, they can be loaded so.
void write_index_vectors(CudaWriter& out, const Estimate& estimate) {
  const int rank = vector_read_rank(estimate.index_k, Variable::kIndexD);
  if (rank == 0) return;
  const CudaNames names = cuda_names(Tiling::kPredictor);
  const Expr& key = estimate.index_k;
  const std::string parameter = names.parameter(key.parameters[key.root().symbol]);
  out.generated_line("  static constexpr bool kIndexKeysAreVectors = true;");
  write_hook(out, "bool index_k_has_quads(const Args& args)", "/predictor/estimate/index/k",
             "lacuna::has_quads<" + std::to_string(rank) + ">(" + parameter + ", " +
                 std::to_string(estimate.index_dim) + ")");
  write_hook(out, "const float* index_k_at(const Args& args, int k, int index_d, int b)",
             "/predictor/estimate/index/k",
             "lacuna::address_at(" + print_cuda_element(key, names) + ")");
}

void write_index_hooks(CudaWriter& out, const Estimate& estimate) {
  const auto text = [](const Expr& expr) { return cuda_body(expr, "1.0f", Tiling::kPredictor); };
  write_hook(out, "float index_q(const Args& args, int index_h, int q, int index_d, int h, int b)",
             "/predictor/estimate/index/q", text(estimate.index_q));
  write_hook(out, "float index_k(const Args& args, int k, int index_d, int b)",
             "/predictor/estimate/index/k", text(estimate.index_k));
  write_index_vectors(out, estimate);
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
