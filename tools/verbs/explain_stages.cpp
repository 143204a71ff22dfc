#include "tools/verbs/explain_stages.hpp"

#include <optional>
#include <vector>

#include "tools/common/shape_option.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

/// The launch values at a shape.
class Values {
 public:
  Values(const LaunchProgram& program, const LaunchShape& shape)
      : values_(program.values.size()),
        counted_(evaluate_launch_values(program, shape, values_.data())) {}

  bool counted() const { return counted_; }
  std::int32_t at(int index) const { return values_[static_cast<std::size_t>(index)]; }
  std::uint64_t bytes(int index) const {
    return index < 0 ? 0 : static_cast<std::uint64_t>(at(index)) * kWorkspaceUnitBytes;
  }

 private:
  std::vector<std::int32_t> values_;
  bool counted_;
};

}  // namespace

std::string print_stages(const LaunchProgram& program, const LaunchShape& shape, bool color) {
  const Values values(program, shape);
  if (!values.counted())
    return "\nThe workspace at " + print_shape(shape) + " is beyond what 31 bits can count.\n";
  Table stages{.head = {"kernel", "blocks", "threads", "shared memory", "left out while"},
               .rows = {}};
  for (const KernelLaunch& launch : program.launches)
    stages.rows.push_back({launch.stage, std::to_string(values.at(launch.grid_x)),
                           std::to_string(launch.threads),
                           print_bytes(static_cast<std::uint64_t>(launch.smem_bytes)),
                           launch.decides ? "a kept mask is good" : ""});
  std::string text = "\nA launch at " + print_shape(shape) + ":\n" + print_table(stages, color);
  if (program.workspace_value < 0) return text;
  Table slots{.head = {"workspace", "bytes"}, .rows = {}};
  for (const WorkspaceSlot& slot : program.slots)
    if (values.at(slot.size) > 0)
      slots.rows.push_back({slot.name, print_bytes(values.bytes(slot.size))});
  slots.rows.push_back({"in all", print_bytes(values.bytes(program.workspace_value))});
  return text + "\n" + print_table(slots, color);
}

ordered_json stages_json(const LaunchProgram& program, const LaunchShape& shape) {
  const Values values(program, shape);
  if (!values.counted()) return nullptr;
  ordered_json stages = ordered_json::array(), slots = ordered_json::object();
  for (const KernelLaunch& launch : program.launches)
    stages.push_back({{"stage", launch.stage},
                      {"entry", launch.entry},
                      {"blocks", values.at(launch.grid_x)},
                      {"threads", launch.threads},
                      {"smem_bytes", launch.smem_bytes},
                      {"decides", launch.decides}});
  for (const WorkspaceSlot& slot : program.slots) slots[slot.name] = values.bytes(slot.size);
  return {{"shape", print_shape(shape)},
          {"kernels", stages},
          {"workspace", slots},
          {"workspace_bytes", values.bytes(program.workspace_value)}};
}

}  // namespace lacuna::tools
