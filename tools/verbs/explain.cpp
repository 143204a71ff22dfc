// lacuna explain: what the compiler decides for a spec, and why; or what an error code means.
#include <cstdio>

#include "cache/store.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/target/plan_values.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/kernel.hpp"
#include "runtime/tune/lookup.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/table.hpp"
#include "tools/group/plan_table.hpp"
#include "tools/verbs/explain_code.hpp"
#include "tools/verbs/explain_launch.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

struct ExplainOptions {
  std::string subject;
  LoweringOptions lowering;
  LaunchShape shape{1, 32, 8, 32768, 32768};  ///< at which memory is counted
  /// Tuned tiles are those of the nearest shape, as of a kernel that is compiled for one; else of
  /// the largest.
  bool has_shape = false;
  GroupOptions group;
};

constexpr const char* kExplainDescription =
    R"(Show every decision the compiler makes for a spec and where it comes from; or explain a code.

Examples:
  lacuna explain specs/bsfa.json --arch sm_90a
  lacuna explain specs/dense.json --arch sm_86 --head-dim 256 --dtype f16
  lacuna explain specs/sparge.json --shape b=1,h=24,n=119056
  lacuna explain specs/dense.json --gpus 8 --layout striped --shape h=32,h_kv=8,n=131072
  lacuna explain E0203

Tuned tiles are shown as a kernel gets them that is compiled for problems of --shape, without it
those of the largest problem that was measured.
See also: check, emit --form plan)";

std::string print_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value);
  return buffer;
}

/// "shared memory", of "limited by shared memory"
std::string limit_of_blocks(const Plan& plan) {
  constexpr std::string_view kBefore = "limited by ";
  const std::string& reason = plan.attend.blocks_per_sm.reason;
  return reason.substr(reason.find(kBefore) + kBefore.size());
}

std::string print_param_shape(const ParamSymbol& symbol) {
  if (symbol.shape.empty()) return "scalar";
  std::string text;
  for (const ParamDim& dim : symbol.shape) {
    text += (text.empty() ? "[" : ", ") + name_of(dim);
  }
  return text + "]";
}

std::string print_params(const VariantSpec& spec, bool color) {
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

std::string print_let(const VariantSpec& spec, bool color) {
  if (spec.let.empty()) return "";
  Table table{.head = {"name", "stands for"}, .rows = {}};
  for (const LetSymbol& symbol : spec.let) table.rows.push_back({symbol.name, symbol.expr.text});
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
  if (!attend.sink.empty()) add("attention.sink", attend.sink, "");
  for (const auto& [select, estimate] : predict_steps(program)) {
    if (estimate != nullptr && estimate->is_given()) add("estimate.from", estimate->from, "");
    if (estimate != nullptr && estimate->is_indexed()) {
      add("estimate.index.q", estimate->index_q, "");
      add("estimate.index.k", estimate->index_k, "");
      add("estimate.index.weight", estimate->index_weight, "1");
    }
    if (estimate != nullptr && !estimate->reference.empty())
      add("estimate.reference", estimate->reference, "");
    if (estimate != nullptr && !estimate->exclude.empty())
      add("estimate.exclude", estimate->exclude, "");
    add("predictor.keep", select->keep, "true");
  }
  if (const auto* merge = find_op<MergeBranch>(program); merge && !merge->weight.empty())
    add("weight", merge->weight, "");
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

void print_plan_for_people(const Plan& plan, const VariantSpec& spec, const ProblemShape& shape,
                           Session& session) {
  const bool color = session.color_stdout();
  std::string text = spec.name + (spec.doc.empty() ? "" : ": " + spec.doc) + "\n";
  if (!spec.source.empty()) text += "Source: " + spec.source + "\n";
  text += "\nOn " + plan.target.name + ", head dim " + std::to_string(plan.program.head_dim) +
          ", " + std::string(name_of(plan.program.dtype)) + ":\n\n";
  Table table{.head = {"value", "is", "from", "because"}, .rows = {}};
  for (const PlanValue& value : plan_values(plan)) {  // formulas have a table of their own
    if (!value.is_formula)
      table.rows.push_back(
          {value.name, value.value, std::string(name_of(value.origin)), value.reason});
  }
  text += print_table(table, color) + print_budget(plan);
  text += print_formulas(plan.program, color) + print_let(spec, color) + print_params(spec, color);
  if (plan.target.kind == TargetKind::kCuda)
    text += print_launch(lower_plan(plan), emit_launch_program(plan), shape, color);
  session.print(text);
}

void add_plan_json(const Plan& plan, const SpecDocument& document, const ProblemShape& shape,
                   Session& session) {
  ordered_json values = ordered_json::array();
  for (const PlanValue& value : plan_values(plan)) {
    values.push_back({{"name", value.name},
                      {"value", value.value},
                      {"origin", name_of(value.origin)},
                      {"reason", value.reason}});
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
    entry["launch"] = launch_json(lower_plan(plan), emit_launch_program(plan), document, shape);
  }
  if (document.spec.branch.count > 0) entry["branch"] = document.spec.branch.name;
  session.document["plans"].push_back(entry);
}

/// How a group of ranks with this target would share the problem.
void explain_group(const ExplainOptions& options, const SpecDocument& document,
                   const BuildOptions& build, const Target& target, Session& session) {
  Diagnostics diagnostics;
  ordered_json plan =
      plan_for_explain(document, build, target, options.shape, options.group, diagnostics);
  session.report(diagnostics, document.source);
  if (diagnostics.has_errors()) return;
  session.print("\n" + print_group_plan(plan, session.color_stdout()));
  session.document["plans"].back()["group"] = std::move(plan);
}

/// One attend.
void explain_attend(const ExplainOptions& options, const SpecDocument& document,
                    const BuildOptions& build, const Target& target, Session& session) {
  Diagnostics diagnostics;
  const tune::Hardware hardware = tune::hardware_for(target, cpu_name());
  const auto shape_of_records = options.has_shape ? std::optional(options.shape) : std::nullopt;
  const tune::TunedOptions tuned =
      tune::tuned_options(cache::choose_directory(system_variable),
                          {document, build, hardware, shape_of_records, /*threads=*/0});
  for (const std::string& warning : tuned.warnings) session.note(warning);
  const Plan plan = make_plan(document, tuned.options, target, diagnostics);
  session.report(diagnostics, document.source);
  if (diagnostics.has_errors()) return;
  const BranchSpec& branch = document.spec.branch;
  const ProblemShape shape(options.shape, {branch.means, branch.query_means});
  add_plan_json(plan, document, shape, session);
  if (!session.json) print_plan_for_people(plan, document.spec, shape, session);
  if (options.group.gpus > 0 && branch.count == 0)
    explain_group(options, document, tuned.options, target, session);
}

void explain_spec(const ExplainOptions& options, Session& session) {
  const auto document = load_spec(options.subject, session);
  if (!document) return;
  session.document["spec"] = document->spec.name;
  session.document["plans"] = ordered_json::array();
  for (const Target& target : targets_of(options.lowering.archs)) {
    Diagnostics found;
    const BuildOptions build =
        with_family(build_options(document->spec, options.lowering), target, found);
    session.report(found, document->source);
    if (found.has_errors()) return;
    for (const SpecDocument& attend : branch_documents(*document)) {
      if (attend.spec.branch.index > 0) session.print("\n");
      explain_attend(options, attend, build, target, session);
    }
    // All branches run on a rank's rows together.
    if (options.group.gpus > 0 && !document->spec.branches.empty() &&
        !session.document["plans"].empty())
      explain_group(options, *document, build, target, session);
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
  add_group_options(*verb, options->group);
  verb->callback([options, verb, &session] {
    options->has_shape = verb->count("--shape") > 0 || options->group.gpus > 0;
    run_explain(*options, session);
  });
}

}  // namespace lacuna::tools
