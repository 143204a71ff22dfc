// The text of a plan: one line for each value, with its origin.
#include "compiler/target/plan.hpp"

#include <charconv>

#include "compiler/expr/parse.hpp"
#include "compiler/ir/names.hpp"

namespace lacuna {

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kSpec:
      return "spec";
    case Origin::kDefault:
      return "default";
    case Origin::kDerived:
      return "derived";
    case Origin::kTuned:
      return "tuned";
    case Origin::kCaller:
      return "caller";
  }
  return "";
}

namespace {

std::string text_of(int value) { return std::to_string(value); }
std::string text_of(float value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(GateScope value) { return std::string(name_of(value)); }
std::string text_of(TileOrder value) { return std::string(name_of(value)); }
std::string text_of(AttendFamily value) { return std::string(name_of(value)); }
std::string text_of(Loader value) { return std::string(name_of(value)); }
std::string text_of(QuantGroup value) { return std::string(name_of(value)); }

std::string line(std::string_view field, std::string_view value, std::string_view origin,
                 std::string_view reason = "") {
  std::string text = std::string(field) + " = " + std::string(value);
  text.append(text.size() < 30 ? 30 - text.size() : 2, ' ');
  text += "(" + std::string(origin) + (reason.empty() ? "" : ": " + std::string(reason)) + ")";
  return text + "\n";
}

template <class T>
std::string line(std::string_view field, const Chosen<T>& chosen) {
  return line(field, text_of(chosen.value), name_of(chosen.origin), chosen.reason);
}

/// An expression of the spec, or what stands for it when there is none.
std::string line(std::string_view field, const Expr& expr, std::string_view absent) {
  return expr.empty() ? line(field, absent, "default")
                      : line(field, "\"" + print_expr(expr) + "\"", "spec");
}

std::string gate_lines(const Gate& gate, const Chosen<GateScope>& scope) {
  std::string skips;
  for (const auto& [name, set] :
       {std::pair{"v_load", gate.skips_v_load}, std::pair{"exp", gate.skips_exp},
        std::pair{"pv", gate.skips_pv}}) {
    if (set) skips += (skips.empty() ? "" : ", ") + std::string(name);
  }
  return line("gate.scope", scope) + line("gate.skip", gate.skip, "never") +
         line("gate.exempt", gate.exempt, "nothing") +
         line("gate.skips", "[" + skips + "]", "spec");
}

std::string estimate_lines(const Estimate& estimate, const Target& target,
                           const AttendPlan& chosen) {
  const std::string what = name_of(estimate.rows) + " x " + name_of(estimate.columns) + ", " +
                           std::string(name_of(estimate.reduce)) + ", " +
                           std::string(name_of(estimate.normalise));
  std::string text = line("predictor.estimate", what, "spec");
  text += line("predictor.estimate.bits", chosen.estimate_bits);
  if (chosen.estimate_product_bits.value != chosen.estimate_bits.value)
    text += line("predictor.estimate.product_bits", chosen.estimate_product_bits);
  if (target.has_wgmma && estimate.rows.kind == SummaryKind::kTokens)
    text += line("predictor.estimate.family", chosen.estimate_family);
  if (estimate.bits < 16) text += line("predictor.estimate.group", name_of(estimate.group), "spec");
  if (estimate.normalise == Normalise::kLse)
    text += line("predictor.estimate.reference", estimate.reference, "everything visible");
  return text + line("predictor.estimate.exclude", estimate.exclude, "nothing");
}

std::string predictor_lines(const Program& program, const Target& target,
                            const AttendPlan& chosen) {
  const auto* select = find_op<Select>(program);
  if (select == nullptr) return "";
  std::string text = line("predictor.tile.q", chosen.keep_q);
  text += line("predictor.tile.k", chosen.keep_k);
  if (const auto* estimate = find_op<Estimate>(program))
    text += estimate_lines(*estimate, target, chosen);
  text += line("predictor.keep", select->keep, "everything visible");
  text += line("predictor.heads", select->shared_heads ? "shared" : "own",
               select->shared_heads ? "spec" : "default");
  return text + line("predictor.reuse", chosen.reuse);
}

/// Precisions other than the caller's, and what became of those that the target does not have.
std::string quantise_lines(const AttendPlan& chosen) {
  std::string text;
  if (chosen.qk_bits.value != 16)
    text += line("quantise.qk.bits", chosen.qk_bits) + line("quantise.qk.group", chosen.qk_group);
  if (chosen.v_bits.value != 16 || chosen.v_bits.origin == Origin::kDerived)
    text += line("quantise.v.bits", chosen.v_bits);
  return text;
}

/// Where the target leaves a choice: which family of attend it is, and what that one decides.
std::string family_lines(const Target& target, const AttendPlan& chosen) {
  if (!target.has_wgmma) return "";
  std::string text = line("family", chosen.family);
  if (chosen.family.value != AttendFamily::kWgmma) return text;
  text += line("tile_rows", chosen.tile_rows) + line("warpgroups", chosen.warpgroups);
  text += line("step_keys", chosen.step_keys) + line("value_stages", chosen.value_stages);
  return text + line("query_buffers", chosen.query_buffers);
}

/// Where rows are split, or somebody asked whether to.
std::string split_line(const AttendPlan& chosen) {
  const bool is_usual =
      chosen.split_rows.value == 1 && chosen.split_rows.origin == Origin::kDefault;
  return is_usual ? "" : line("tile.split_rows", chosen.split_rows);
}

}  // namespace

std::string print_plan(const Plan& plan) {
  const Program& program = plan.program;
  const Attend& attend = attend_of(program);
  const AttendPlan& chosen = plan.attend;
  std::string text = "plan @" + program.name + " on " + plan.target.name + "\n";
  text += line("head_dim", text_of(program.head_dim), "caller");
  text += line("dtype", name_of(program.dtype), "caller");
  text += line("attention.mask", attend.mask, "everything is visible");
  if (!attend.mask.empty()) {
    text +=
        line("attention.tile_full", "\"" + print_expr(attend.classifier.must) + "\"", "derived");
    text +=
        line("attention.tile_visible", "\"" + print_expr(attend.classifier.may) + "\"", "derived");
  }
  text += line("attention.score", attend.score, "s");
  text += line("attention.scale", chosen.scale) + line("attention.lse", chosen.lse);
  if (attend.gate) text += gate_lines(*attend.gate, chosen.gate_scope);
  text += predictor_lines(program, plan.target, chosen) + quantise_lines(chosen);
  text += line("tile.q", chosen.tile_q) + line("tile.k", chosen.tile_k);
  text += line("tile.order", chosen.order);
  if (plan.target.kind == TargetKind::kCpu) return text;
  text += line("tile.stages", chosen.stages) + line("tile.warps", chosen.warps);
  text += split_line(chosen);
  text += family_lines(plan.target, chosen);
  text += line("loader", chosen.loader);
  text += line("smem_bytes", chosen.smem_bytes) + line("registers", chosen.registers);
  return text + line("blocks_per_sm", chosen.blocks_per_sm);
}

}  // namespace lacuna
