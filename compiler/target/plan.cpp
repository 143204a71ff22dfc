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
std::string text_of(Loader value) { return std::string(name_of(value)); }

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
  text += line("tile.q", chosen.tile_q) + line("tile.k", chosen.tile_k);
  text += line("tile.order", chosen.order);
  if (plan.target.kind == TargetKind::kCpu) return text;
  text += line("tile.stages", chosen.stages) + line("tile.warps", chosen.warps);
  text += line("loader", chosen.loader);
  text += line("smem_bytes", chosen.smem_bytes) + line("registers", chosen.registers);
  return text + line("blocks_per_sm", chosen.blocks_per_sm);
}

}  // namespace lacuna
