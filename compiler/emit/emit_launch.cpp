// Plan -> LaunchProgram: what the host computes and writes before it launches the kernels.
#include <algorithm>

#include "compiler/emit/bind_args.hpp"
#include "compiler/emit/block_layout.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/emit/stages.hpp"
#include "compiler/emit/workspace.hpp"
#include "compiler/expr/parse.hpp"

namespace lacuna {
namespace {

int add_value(LaunchProgram& program, std::string name, const std::string& text) {
  program.values.push_back({std::move(name), parse_expr(text, Site::kLaunch, {}).expr});
  return static_cast<int>(program.values.size()) - 1;
}

int add_sum(LaunchProgram& program, std::string name, int first, int second) {
  program.values.push_back({std::move(name), {}, first, second});
  return static_cast<int>(program.values.size()) - 1;
}

/// The workspace, slot behind slot; the end of the last one is its size.
void add_workspace(const StageFacts& facts, LaunchProgram& program) {
  const std::vector<SlotSize> slots = workspace_slots(facts);
  if (slots.empty()) return;
  int end = add_value(program, "workspace.begin", "0");
  for (const SlotSize& slot : slots) {
    const std::string name = slot.name;
    const int size = add_value(program, name + ".size", slot.units);
    program.slots.push_back({name, end, size, slot.cleared});
    end = add_sum(program, name + ".end", end, size);
  }
  program.workspace_value = end;
  program.kept_slot = find_slot(program, "kept");
}

void add_launches(const StageFacts& facts, LaunchProgram& program) {
  for (const StageKernel& kernel : stage_kernels(facts)) {
    program.launches.push_back({kernel.entry, kernel.stage, kernel.decides, kernel.follows,
                                add_value(program, kernel.grid_name, kernel.grid), kernel.threads,
                                kernel.smem_bytes});
  }
}

}  // namespace

LaunchProgram emit_launch_program(const Plan& plan) {
  const StageFacts facts = find_stages(plan);
  LaunchProgram program;
  program.reuse = std::max(1, plan.attend.reuse.value);
  for (const NamedSize& size : attend_sizes(facts)) add_value(program, size.name, size.expr);
  if (plan.target.kind == TargetKind::kCpu) return program;
  for (const NamedSize& size : predict_sizes(facts)) add_value(program, size.name, size.expr);
  add_launches(facts, program);
  add_workspace(facts, program);
  // No item of a split row could clear its row's reports before all others.
  if (facts.splits_rows()) program.cleared = {TensorRole::kCounts, TensorRole::kTileMask};
  program.args_bytes = args_bytes(plan.program, facts.parts());
  program.fields = bind_args(facts, program);
  program.maps = bind_maps(facts, program);
  return program;
}

}  // namespace lacuna
