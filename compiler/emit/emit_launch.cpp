// Plan -> LaunchProgram: what the host computes and writes before it launches the kernels.
#include <algorithm>

#include "compiler/emit/bind_arguments.hpp"
#include "compiler/emit/block_layout.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/emit/kernel_names.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/lower/lower.hpp"

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

const char* name_of_begin(SlotRegion region) {
  switch (region) {
    case SlotRegion::kShared:
      return "shared.begin";
    case SlotRegion::kBatch:
      return "batch.begin";
    case SlotRegion::kOwn:
      return "workspace.begin";
  }
  return "";
}

/// Slot behind slot of a region; the end of the last one is the size of all. -1: there are none.
int add_slots(const std::vector<Slot>& slots, SlotRegion region, LaunchProgram& program) {
  int end = -1;
  for (const Slot& slot : slots) {
    if (slot.region != region) continue;
    if (end < 0) end = add_value(program, name_of_begin(region), "0");
    const std::string name = slot.name;
    const int size = add_value(program, name + ".size", slot.units);
    program.slots.push_back({name, end, size, slot.cleared, slot.region});
    end = add_sum(program, name + ".end", end, size);
  }
  return end;
}

void add_workspace(const std::vector<Slot>& slots, LaunchProgram& program) {
  program.shared_value = add_slots(slots, SlotRegion::kShared, program);
  program.batch_value = add_slots(slots, SlotRegion::kBatch, program);
  program.workspace_value = add_slots(slots, SlotRegion::kOwn, program);
  program.kept_slot = find_slot(program, "kept");
}

/// A kernel behind another may begin before that has ended, where the target allows it.
void add_launches(const Plan& plan, const LoweredPlan& lowered, LaunchProgram& program) {
  for (const Kernel& kernel : lowered.kernels) {
    const bool overlaps = plan.target.overlaps_kernels && &kernel != &lowered.kernels.front();
    const int grid = add_value(program, grid_name(kernel), kernel.grid.expr);
    const int kept_grid =
        kernel.kept_grid.expr.empty()
            ? grid
            : add_value(program, grid_name(kernel) + ".kept", kernel.kept_grid.expr);
    program.launches.push_back({entry_name(kernel, plan.program), kernel.name, kernel.decides,
                                overlaps, kernel.is_packed, grid, kept_grid,
                                runs_each_sequence(lowered, kernel), kernel.threads.value,
                                kernel.smem_bytes.value});
  }
}

}  // namespace

LaunchProgram emit_launch_program(const Plan& plan) {
  LaunchProgram program;
  program.reuse = std::max(1, plan.attend.reuse.value);
  const auto add_sizes = [&](const std::vector<NamedSize>& sizes) {
    for (const NamedSize& size : sizes) add_value(program, size.name, size.expr);
  };
  if (plan.target.kind == TargetKind::kCpu) {
    add_sizes(attend_sizes(plan));
    return program;
  }
  const LoweredPlan lowered = lower_plan(plan);
  add_sizes(lowered.sizes);
  add_launches(plan, lowered, program);
  add_workspace(lowered.slots, program);
  program.cleared = lowered.cleared;
  program.each_sequence = lowered.each_sequence;
  program.args_bytes = args_bytes(plan.program, lowered.parts);
  program.fields = bind_arguments(plan, lowered, program);
  program.maps = bind_maps(plan, program);
  if (plan.packed) program.packed = bind_packed(plan_of_packed(plan), program);
  return program;
}

}  // namespace lacuna
