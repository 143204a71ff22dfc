#include "runtime/engine/build/relieve.hpp"

#include <algorithm>

#include "compiler/expr/parts/mask_parts.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/passes/relief.hpp"
#include "runtime/engine/build/assembly.hpp"

namespace lacuna {
namespace {

int spill_bytes(const Compilation& compilation) {
  int bytes = 0;
  for (const KernelResources& kernel : compilation.kernels)
    bytes += kernel.spill_bytes + kernel.stack_bytes;
  return bytes;
}

/// What attend keeps in registers beside scores and output: the field of the spec, and a word.
struct Cost {
  const char* pointer;
  const char* text;
};

std::vector<Cost> costs_of(const Plan& plan) {
  const Attend& attend = attend_of(plan.program);
  std::vector<Cost> costs;
  const auto add = [&](bool has, const char* pointer, const char* text) {
    if (has) costs.push_back({pointer, text});
  };
  add(!attend.score.empty(), "/attention/score", "attention.score");
  add(!attend.mask.empty(), "/attention/mask",
      split_mask(attend.mask).ranges.empty() ? "attention.mask, which is asked about each key"
                                             : "attention.mask");
  add(attend.gate.has_value(), "/gate", "gate");
  add(attend.q_scale >= 0, "/quantise/qk", "quantise.qk");
  add(attend.v_scale >= 0, "/quantise/v", "quantise.v");
  add(attend.row_bias >= 0 || attend.column_bias >= 0, "/predictor/smooth", "predictor.smooth");
  add(attend.columns >= 0, "/loader", "gathered keys");
  add(plan.attend.split_kv.value > 1, "/tile/split_kv", "tile.split_kv");
  return costs;
}

void add_change(std::string& text, const char* name, const std::string& from,
                const std::string& to) {
  if (from == to) return;
  text += (text.empty() ? "" : ", ") + std::string(name) + " = " + to + " (was " + from + ")";
}

std::string changes(const Plan& first, const Plan& taken) {
  const AttendPlan &from = first.attend, &to = taken.attend;
  std::string text;
  add_change(text, "family", std::string(name_of(from.family.value)),
             std::string(name_of(to.family.value)));
  add_change(text, "tile.q", std::to_string(from.tile_q.value), std::to_string(to.tile_q.value));
  add_change(text, "tile.k", std::to_string(from.tile_k.value), std::to_string(to.tile_k.value));
  if (to.family.value == AttendFamily::kWgmma) {
    add_change(text, "step_keys", std::to_string(from.step_keys.value),
               std::to_string(to.step_keys.value));
    add_change(text, "tile.queries", std::string(name_of(from.queries.value)),
               std::string(name_of(to.queries.value)));
    const auto of_few = [](const Plan& plan) {
      return std::string(plan.packed ? "attend_packed" : "attend");
    };
    add_change(text, "few_queries", of_few(first), of_few(taken));
  }
  return text;
}

void report_pinned(const Plan& plan, const Compilation& compilation, Diagnostics& diagnostics) {
  check_assembly(plan, compilation, diagnostics);
  diagnostics.items.back().helps.emplace_back(
      "leave the family open (LACUNA_ATTEND_FAMILY, BuildOptions::family): the mma family has "
      "registers for this kernel");
}

}  // namespace

std::optional<Plan> relieved_plan(const SpecDocument& document, BuildOptions options, int relief,
                                  const Target& target) {
  options.relief = relief;
  Diagnostics found;
  Plan plan = make_plan(document, options, target, found);
  if (found.has_errors()) return std::nullopt;
  return plan;
}

std::optional<RelievedBuild> build_relieved(const Plan& first, const SpecDocument& document,
                                            const BuildOptions& options,
                                            const CompileSource& compile,
                                            Diagnostics& diagnostics) {
  std::vector<std::string> tried, complaints;
  std::optional<RelievedBuild> best;
  for (int relief = options.relief; relief < static_cast<int>(reliefs().size()); ++relief) {
    const auto plan = relief == options.relief
                          ? std::optional(first)
                          : relieved_plan(document, options, relief, first.target);
    if (!plan) continue;
    CudaSource source = emit_cuda(*plan, document);
    std::string text = source_text(source);
    if (std::ranges::count(tried, text) != 0) continue;
    tried.push_back(std::move(text));
    Diagnostics found;
    Compilation made = compile(source, best ? found : diagnostics);
    if (made.cubins.empty() && !best) return std::nullopt;
    if (made.cubins.empty()) continue;
    const std::vector<std::string> against = assembly_complaints(*plan, made);
    if (!best || against.empty() || spill_bytes(made) < spill_bytes(best->compilation)) {
      best = RelievedBuild{relief, *plan, std::move(source), std::move(made), {}};
    }
    if (against.empty()) break;
    complaints.push_back(against.front());
  }
  if (options.family == AttendFamily::kWgmma &&
      !assembly_complaints(best->plan, best->compilation).empty()) {
    report_pinned(best->plan, best->compilation, diagnostics);
    return std::nullopt;
  }
  best->complaints = std::move(complaints);
  return best;
}

Diagnostic relief_note(const SpecDocument& document, const Plan& first, const Plan& taken,
                       const std::vector<std::string>& complaints) {
  const std::vector<Cost> costs = costs_of(first);
  std::string text = changes(first, taken);
  const std::string place = costs.empty() ? "" : costs.front().pointer;
  Diagnostic d = at_field(
      document, place, Code::kRelief, Severity::kPerf,
      "attend on " + first.target.name +
          (text.empty() ? " spills registers, and no other plan spills less"
                        : " is built with " + text + ": registers of the first choice spill"));
  std::string takers;
  for (const Cost& cost : costs) takers += (takers.empty() ? "" : "; ") + std::string(cost.text);
  if (!takers.empty()) d.notes.push_back("registers go to " + takers);
  for (const std::string& complaint : complaints) d.notes.push_back(complaint);
  return d;
}

}  // namespace lacuna
