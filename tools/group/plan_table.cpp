#include "tools/group/plan_table.hpp"

#include <cstdio>

#include "compiler/emit/emit.hpp"
#include "runtime/base/arguments.hpp"
#include "runtime/group/group.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

std::string number_text(const char* pattern, double value) {
  char text[32];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string percent(double share) { return number_text("%.1f %%", 100 * share); }

std::vector<std::string> scheme_cells(const ordered_json& scheme, double one_gpu_us, int ranks) {
  const double total_us = scheme["total_us"];
  return {scheme["scheme"],
          print_bytes(scheme["sent_bytes_total"].get<std::uint64_t>()),
          percent(scheme["imbalance"]),
          std::to_string(scheme["launches"].get<int>()),
          print_time_us(scheme["exchange_us"]),
          print_time_us(scheme["compute_us"]),
          print_time_us(total_us),
          number_text("%.3f", one_gpu_us / (total_us * ranks))};
}

Diagnostic group_refusal_of(std::string message) {
  Diagnostic d;
  d.code = Code::kUnsupported;
  d.message = std::move(message);
  return d;
}

}  // namespace

std::string print_group_plan(const ordered_json& plan, bool color) {
  const int ranks = plan["ranks"];
  const double one_gpu_us = plan["one_gpu_us"];
  Table table{.head = {"scheme", "sends", "imbalance", "launches", "exchange", "compute", "in all",
                       "efficiency"},
              .rows = {}};
  std::string refused;
  for (const ordered_json& scheme : plan["schemes"]) {
    if (scheme["possible"].get<bool>()) {
      table.rows.push_back(scheme_cells(scheme, one_gpu_us, ranks));
    } else {
      refused += "  Not " + scheme["scheme"].get<std::string>() + ": " +
                 scheme["reason"].get<std::string>() + "\n";
    }
  }
  return "On " + std::to_string(ranks) + " ranks, layout " + plan["layout"].get<std::string>() +
         " (one rank alone: " + print_time_us(one_gpu_us) + "):\n\n" + print_table(table, color) +
         refused + "\n  Taken: " + plan["scheme"].get<std::string>() + ", " +
         plan["because"].get<std::string>() + "\n  Link   " +
         number_text("%.4g GB/s", plan["link"]["gb_per_s"]) + " by " +
         plan["exchange"].get<std::string>() + ": " + plan["link"]["origin"].get<std::string>() +
         "\n  Kernel " + number_text("%.4g TFLOP/s: ", plan["kernel"]["tflops"]) +
         plan["kernel"]["origin"].get<std::string>() + "\n";
}

ordered_json plan_for_explain(const SpecDocument& document, const BuildOptions& build,
                              const Target& target, const LaunchShape& shape,
                              const GroupOptions& options, Diagnostics& diagnostics) {
  BuildOptions positioned = build;
  positioned.positions = true;
  group::CutRules rules;
  for (const SpecDocument& attend : branch_documents(document)) {
    const Plan plan = make_plan(attend, positioned, target, diagnostics);
    if (diagnostics.has_errors()) return nullptr;
    LaunchContract contract = make_contract(plan, {kDLCPU, 0});
    contract.head_dim = build.head_dim;  // a branch may compare a band of the rows that travel
    const std::string refused = group::group_refusal(contract);
    if (!refused.empty()) {
      diagnostics.add(group_refusal_of(document.spec.name + ": " + refused));
      return nullptr;
    }
    rules = group::both(rules, group::cut_rules(plan.program));
  }
  const group::Work work = group::work_of_mask(document, shape, rules.unit);
  const group::Exchange exchange = exchange_of(options).value_or(group::kUsualExchange);
  const group::Rates rates =
      group::known_rates(target.name, exchange, options.link_gb_s, options.tflops);
  group::Problem problem;
  problem.shape = shape;
  problem.layout = layout_of(options, shape, rules.unit);
  problem.head_dim = build.head_dim;
  problem.element_bytes = build.dtype == DType::kF32 ? 4 : 2;
  const auto costs = group::cost_schemes(problem, options.gpus, rules, work, rates);
  const auto wanted = scheme_of(options);
  const auto chosen = group::choose_scheme(costs, wanted);
  if (!chosen) {
    for (const group::SchemeCost& cost : costs) {
      if (wanted == cost.scheme)
        diagnostics.add(group_refusal_of("--scheme " + options.scheme + ": " + cost.refusal));
    }
    return nullptr;
  }
  return ordered_json::parse(
      group::plan_json(costs, *chosen, wanted.has_value(), rates, work, /*rank=*/-1));
}

}  // namespace lacuna::tools
