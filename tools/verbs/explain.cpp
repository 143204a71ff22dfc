// lacuna explain: what the compiler decides for a spec, and why; or what an error code means.
#include <cstdio>

#include "cache/store.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/expr/parse.hpp"
#include "compiler/target/limits.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/tune/lookup.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/table.hpp"
#include "tools/verbs/explain_code.hpp"
#include "tools/verbs/explain_stages.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

struct ExplainOptions {
  std::string subject;
  LoweringOptions lowering;
  LaunchShape shape{1, 32, 8, 32768, 32768};  ///< at which memory is counted
};

constexpr const char* kExplainDescription =
    R"(Show every decision the compiler makes for a spec and where it comes from; or explain a code.

Examples:
  lacuna explain specs/bsfa.json --arch sm_90a
  lacuna explain specs/dense.json --arch sm_86 --head-dim 256 --dtype f16
  lacuna explain specs/sparge.json --shape b=1,h=24,n=119056
  lacuna explain E0203

See also: check, emit --stage plan)";

/// One line of the decision table.
struct Decision {
  std::string name, value, origin, reason;
};

template <class T>
Decision decision(std::string name, const Chosen<T>& chosen, std::string value) {
  return {std::move(name), std::move(value), std::string(name_of(chosen.origin)), chosen.reason};
}

Decision decision(std::string name, const Chosen<int>& chosen) {
  return decision(std::move(name), chosen, std::to_string(chosen.value));
}

std::string print_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value);
  return buffer;
}

void add_predictor(const AttendPlan& attend, std::vector<Decision>& all) {
  if (attend.keep_q.value == 0) return;
  all.push_back(decision("predictor.tile.q", attend.keep_q));
  all.push_back(decision("predictor.tile.k", attend.keep_k));
  all.push_back(decision("predictor.reuse", attend.reuse));
  if (attend.estimate_bits.value == 0) return;
  all.push_back(decision("estimate.bits", attend.estimate_bits));
  all.push_back(decision("estimate arithmetic", attend.estimate_product_bits,
                         std::to_string(attend.estimate_product_bits.value) + " bits"));
  if (!attend.estimate_family.reason.empty())
    all.push_back(decision("estimate.family", attend.estimate_family,
                           std::string(name_of(attend.estimate_family.value))));
}

/// "shared memory", of "limited by shared memory"
std::string limit_of_blocks(const Plan& plan) {
  constexpr std::string_view kBefore = "limited by ";
  const std::string& reason = plan.attend.blocks_per_sm.reason;
  return reason.starts_with(kBefore) ? reason.substr(kBefore.size()) : reason;
}

void add_family(const Plan& plan, std::vector<Decision>& all) {
  const AttendPlan& attend = plan.attend;
  if (!plan.target.has_wgmma) return;
  all.push_back(decision("family", attend.family, std::string(name_of(attend.family.value))));
  if (attend.family.value != AttendFamily::kWgmma) return;
  all.push_back(decision("rows of tiles together", attend.tile_rows));
  all.push_back(decision("warpgroups", attend.warpgroups));
  all.push_back(decision("keys of a step", attend.step_keys));
  all.push_back(decision("stages of values", attend.value_stages));
  all.push_back(decision("query buffers", attend.query_buffers));
}

std::vector<Decision> decisions_of(const Plan& plan) {
  const AttendPlan& attend = plan.attend;
  std::vector<Decision> all = {
      decision("attention.scale", attend.scale, print_number(attend.scale.value)),
      decision("tile.q", attend.tile_q),
      decision("tile.k", attend.tile_k),
      decision("tile.order", attend.order, std::string(name_of(attend.order.value))),
  };
  if (attend_of(plan.program).gate) {
    all.push_back(
        decision("gate.scope", attend.gate_scope, std::string(name_of(attend.gate_scope.value))));
  }
  add_predictor(attend, all);
  if (attend.qk_bits.value < 16) {
    all.push_back(decision("quantise.qk.bits", attend.qk_bits));
    all.push_back(decision("quantise.qk.group", attend.qk_group,
                           std::string(name_of(attend.qk_group.value))));
    all.push_back(decision("quantise.v.bits", attend.v_bits));
  }
  if (plan.target.kind != TargetKind::kCuda) return all;
  all.push_back(decision("tile.stages", attend.stages));
  all.push_back(decision("tile.warps", attend.warps));
  all.push_back(decision("tile.split_rows", attend.split_rows));
  add_family(plan, all);
  all.push_back(decision("loader", attend.loader, std::string(name_of(attend.loader.value))));
  all.push_back(
      decision("shared memory", attend.smem_bytes, std::to_string(attend.smem_bytes.value) + " B"));
  all.push_back(decision("registers", attend.registers));
  all.push_back(decision("blocks per SM", attend.blocks_per_sm));
  return all;
}

std::string print_param_shape(const ParamSymbol& symbol) {
  if (symbol.shape.empty()) return "scalar";
  std::string text;
  for (const ParamDim dim : symbol.shape) {
    text += (text.empty() ? "[" : ", ") + std::string(name_of(dim));
  }
  return text + "]";
}

std::string print_params(const Spec& spec, bool color) {
  if (spec.params.empty()) return "";
  Table table{.head = {"parameter", "shape", "range", "default", "meaning"}, .rows = {}};
  for (const ParamSpec& param : spec.params) {
    const std::string unit = param.unit.empty() ? "" : " (" + param.unit + ")";
    table.rows.push_back({param.symbol.name, print_param_shape(param.symbol),
                          print_number(param.minimum) + " to " + print_number(param.maximum),
                          param.has_default ? print_number(param.default_value) : "none: pass it",
                          param.doc + unit});
  }
  return "\n" + print_table(table, color);
}

/// The formulas, as folded.
std::string print_formulas(const Program& program, bool color) {
  const Attend& attend = attend_of(program);
  Table table{.head = {"formula", "is"}, .rows = {}};
  const auto add = [&table](const char* name, const Expr& expr, const char* absent) {
    table.rows.push_back({name, expr.empty() ? absent : print_expr(expr)});
  };
  add("attention.mask", attend.mask, "true: every key is visible");
  add("attention.score", attend.score, "s: unchanged");
  if (const auto* estimate = find_op<Estimate>(program)) {
    if (!estimate->reference.empty()) add("estimate.reference", estimate->reference, "");
    if (!estimate->exclude.empty()) add("estimate.exclude", estimate->exclude, "");
  }
  if (const auto* select = find_op<Select>(program)) add("predictor.keep", select->keep, "true");
  if (attend.gate) {
    add("gate.skip", attend.gate->skip, "false");
    add("gate.exempt", attend.gate->exempt, "false: only the first visited tile is exempt");
    std::string skips;
    if (attend.gate->skips_v_load) skips += " v_load";
    if (attend.gate->skips_exp) skips += " exp";
    if (attend.gate->skips_pv) skips += " pv";
    table.rows.push_back(
        {"gate", "per " + std::string(name_of(attend.gate->scope)) + ", skips" + skips});
  }
  return "\n" + print_table(table, color);
}

std::string print_budget(const Plan& plan) {
  if (plan.target.kind != TargetKind::kCuda) return "";
  const auto used = static_cast<std::uint64_t>(plan.attend.smem_bytes.value);
  const auto most = static_cast<std::uint64_t>(plan.target.smem_bytes_per_block);
  return "\n  Shared memory  " + print_bar(static_cast<double>(used) / static_cast<double>(most)) +
         "  " + print_bytes(used) + " of the " + print_bytes(most) + " a block can have\n" +
         "  Blocks per SM  " + std::to_string(plan.attend.blocks_per_sm.value) + ", limited by " +
         limit_of_blocks(plan) + "\n";
}

void print_plan_for_people(const Plan& plan, const Spec& spec, const LaunchShape& shape,
                           Session& session) {
  const bool color = session.color_stdout();
  std::string text = spec.name + (spec.doc.empty() ? "" : ": " + spec.doc) + "\n";
  if (!spec.source.empty()) text += "Source: " + spec.source + "\n";
  text += "\nOn " + plan.target.name + ", head dim " + std::to_string(plan.program.head_dim) +
          ", " + std::string(name_of(plan.program.dtype)) + ":\n\n";
  Table table{.head = {"value", "is", "from", "because"}, .rows = {}};
  for (const Decision& d : decisions_of(plan)) {
    table.rows.push_back({d.name, d.value, d.origin, d.reason});
  }
  text += print_table(table, color) + print_budget(plan);
  text += print_formulas(plan.program, color) + print_params(spec, color);
  if (plan.target.kind == TargetKind::kCuda)
    text += print_stages(emit_launch_program(plan), shape, color);
  session.print(text);
}

void add_plan_json(const Plan& plan, const LaunchShape& shape, Session& session) {
  ordered_json values = ordered_json::array();
  for (const Decision& d : decisions_of(plan)) {
    values.push_back(
        {{"name", d.name}, {"value", d.value}, {"origin", d.origin}, {"reason", d.reason}});
  }
  ordered_json entry = {{"target", plan.target.name},
                        {"head_dim", plan.program.head_dim},
                        {"dtype", name_of(plan.program.dtype)},
                        {"values", values}};
  if (plan.target.kind == TargetKind::kCuda) {
    entry["smem_bytes"] = plan.attend.smem_bytes.value;
    entry["smem_bytes_per_block"] = plan.target.smem_bytes_per_block;
    entry["blocks_per_sm"] = plan.attend.blocks_per_sm.value;
    entry["limited_by"] = limit_of_blocks(plan);
    entry["launch"] = stages_json(emit_launch_program(plan), shape);
  }
  session.document["plans"].push_back(entry);
}

void explain_spec(const ExplainOptions& options, Session& session) {
  const auto document = load_spec(options.subject, session);
  if (!document) return;
  session.document["spec"] = document->spec.name;
  session.document["plans"] = ordered_json::array();
  const BuildOptions build = build_options(document->spec, options.lowering);
  for (const Target& target : targets_of(options.lowering.archs)) {
    Diagnostics diagnostics;
    const tune::Hardware hardware = tune::hardware_for(target, cpu_name());
    const tune::TunedOptions tuned =
        tune::tuned_options(cache::choose_directory(system_variable),
                            {*document, build, hardware, options.shape, /*threads=*/0});
    for (const std::string& warning : tuned.warnings) session.note(warning);
    const Plan plan = make_plan(*document, tuned.options, target, diagnostics);
    session.report(diagnostics, document->source);
    if (diagnostics.has_errors()) continue;
    add_plan_json(plan, options.shape, session);
    if (!session.json) print_plan_for_people(plan, document->spec, options.shape, session);
  }
}

void run_explain(ExplainOptions& options, Session& session) {
  if (const auto number = code_number(options.subject)) {
    explain_code(*number, session);
    return;
  }
  if (options.lowering.archs.empty()) options.lowering.archs = {"sm_90a"};
  explain_spec(options, session);
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* verb = app.add_subcommand("explain", kExplainDescription);
  verb->add_option("subject", options->subject, "A spec file, - for standard input, or a code")
      ->required();
  add_lowering_options(*verb, options->lowering, "Architectures (sm_90a)");
  add_shape_option(*verb, options->shape);
  verb->callback([options, &session] { run_explain(*options, session); });
}

}  // namespace lacuna::tools
