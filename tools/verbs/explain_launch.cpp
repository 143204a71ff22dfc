#include "tools/verbs/explain_launch.hpp"

#include <algorithm>
#include <vector>

#include "runtime/base/whole_tiles.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/common/table.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

/// The launch values at a shape.
class Values {
 public:
  Values(const LaunchProgram& program, const ProblemShape& shape)
      : values_(program.values.size()),
        counted_(evaluate_launch_values(program, shape.attended(), values_.data())) {}

  bool counted() const { return counted_; }
  std::int32_t at(int index) const { return values_[static_cast<std::size_t>(index)]; }
  std::uint64_t bytes(int index) const {
    return index < 0 ? 0 : static_cast<std::uint64_t>(at(index)) * kWorkspaceUnitBytes;
  }

 private:
  std::vector<std::int32_t> values_;
  bool counted_;
};

std::uint64_t workspace_bytes(const LaunchProgram& program, const Values& values) {
  return values.bytes(program.shared_value) + values.bytes(program.batch_value) +
         values.bytes(program.workspace_value);
}

/// A value of a kernel.
struct KernelValue {
  std::string name, value;
  Origin origin;
  std::string reason;
};

/// Blocks that stay are no more than the multiprocessors of a device, which is not at hand.
std::string text_of_blocks(const Kernel& kernel, std::int32_t blocks) {
  if (kernel.grid.expr.find("sm_count") == std::string::npos) return std::to_string(blocks);
  const int resident = kernel.resident_blocks.value;
  const std::string most = resident > 1 ? std::to_string(resident) + " * SMs" : "SMs";
  return blocks == kUnlimitedSmCount ? most : "min(" + std::to_string(blocks) + ", " + most + ")";
}

std::vector<KernelValue> values_of(const Kernel& kernel, std::int32_t blocks) {
  const auto chosen = [](const char* name, const Chosen<int>& value) {
    return KernelValue{name, std::to_string(value.value), value.origin, value.reason};
  };
  return {{"blocks", text_of_blocks(kernel, blocks), Origin::kDerived, kernel.grid.reason},
          chosen("threads", kernel.threads),
          chosen("smem_bytes", kernel.smem_bytes),
          chosen("registers", kernel.registers)};
}

std::string print_reasons(const LoweredPlan& lowered, const LaunchProgram& program,
                          const Values& values, bool color) {
  Table table{.head = {"kernel", "value", "is", "from", "because"}, .rows = {}};
  for (std::size_t n = 0; n < lowered.kernels.size(); ++n) {
    const Kernel& kernel = lowered.kernels[n];
    table.rows.push_back({kernel.name, "needed", "", "", kernel.because});
    for (const KernelValue& value : values_of(kernel, values.at(program.launches[n].grid_x)))
      table.rows.push_back(
          {"", value.name, value.value, std::string(name_of(value.origin)), value.reason});
  }
  return "\n" + print_table(table, color);
}

/// "prepare_q, estimate"
template <class Predicate>
std::string names_of(const Kernels& kernels, const Predicate& counts) {
  std::string text;
  for (const Kernel& kernel : kernels)
    if (counts(kernel)) text += (text.empty() ? "" : ", ") + kernel.name;
  return text;
}

ordered_json config_json(const Kernel& kernel, const SpecDocument& document) {
  ordered_json fields = ordered_json::array();
  for (const ConfigField& field : kernel.config) {
    const bool is_written = document.spans.contains(field.pointer);
    fields.push_back({{"name", field.name},
                      {"value", field.value},
                      {"origin", name_of(is_written ? Origin::kSpec : field.origin)},
                      {"field", field.pointer},
                      {"reason", field.reason}});
  }
  return fields;
}

ordered_json kernel_json(const Kernel& kernel, const KernelLaunch& launch, std::int32_t blocks,
                         const SpecDocument& document) {
  ordered_json values = ordered_json::array(), slots = ordered_json::array();
  for (const KernelValue& value : values_of(kernel, blocks))
    values.push_back({{"name", value.name},
                      {"value", value.value},
                      {"origin", name_of(value.origin)},
                      {"reason", value.reason}});
  for (const Slot& slot : kernel.slots) slots.push_back(slot.name);
  return {{"kernel", launch.name},
          {"entry", launch.entry},
          {"blocks", blocks},
          {"threads", launch.threads},
          {"smem_bytes", launch.smem_bytes},
          {"decides", launch.decides},
          {"because", kernel.because},
          {"grid", kernel.grid.expr},
          {"values", values},
          {"config", config_json(kernel, document)},
          {"operands", kernel.operands},
          {"fills", slots}};
}

}  // namespace

LaunchShape ProblemShape::attended() const {
  LaunchShape shape = caller;
  shape.n_q = ceil_div(shape.n_q, means.queries);
  shape.n_k = ceil_div(shape.n_k, means.keys);
  return shape;
}

std::string ProblemShape::text() const {
  std::string text;
  const auto add = [&](int tokens, std::int32_t count, const char* what) {
    if (tokens < 2) return;
    text += (text.empty() ? " (" : ", ") + std::to_string(count) + " means of " +
            std::to_string(tokens) + what;
  };
  add(means.queries, attended().n_q, " queries");
  add(means.keys, attended().n_k, " keys");
  return print_shape(caller) + (text.empty() ? "" : text + ")");
}

std::string print_launch(const LoweredPlan& lowered, const LaunchProgram& program,
                         const ProblemShape& shape, bool color) {
  const Values values(program, shape);
  if (!values.counted())
    return "\nThe workspace at " + shape.text() + " is beyond what 31 bits can count.\n";
  Table kernels{.head = {"kernel", "blocks", "threads", "shared memory", "left out while"},
                .rows = {}};
  for (std::size_t n = 0; n < program.launches.size(); ++n) {
    const KernelLaunch& launch = program.launches[n];
    kernels.rows.push_back(
        {launch.name, text_of_blocks(lowered.kernels[n], values.at(launch.grid_x)),
         std::to_string(launch.threads), print_bytes(static_cast<std::uint64_t>(launch.smem_bytes)),
         launch.decides ? "a kept selection is good" : ""});
  }
  std::string text = "\nA launch at " + shape.text() + ":\n" + print_table(kernels, color);
  text += print_reasons(lowered, program, values, color);
  if (workspace_bytes(program, values) == 0) return text;
  Table slots{.head = {"workspace", "bytes", "filled by", "read by"}, .rows = {}};
  for (const WorkspaceSlot& slot : program.slots) {
    if (values.at(slot.size) == 0) continue;
    const auto fills = [&](const Kernel& kernel) {
      return std::ranges::any_of(kernel.slots,
                                 [&](const Slot& filled) { return filled.name == slot.name; });
    };
    const auto reads = [&](const Kernel& kernel) {
      return std::ranges::count(kernel.operands, std::string_view(slot.name)) > 0;
    };
    slots.rows.push_back({slot.name, print_bytes(values.bytes(slot.size)),
                          names_of(lowered.kernels, fills), names_of(lowered.kernels, reads)});
  }
  slots.rows.push_back({"in all", print_bytes(workspace_bytes(program, values)), "", ""});
  return text + "\n" + print_table(slots, color);
}

ordered_json launch_json(const LoweredPlan& lowered, const LaunchProgram& program,
                         const SpecDocument& document, const ProblemShape& shape) {
  const Values values(program, shape);
  if (!values.counted()) return nullptr;
  ordered_json kernels = ordered_json::array(), slots = ordered_json::object();
  for (std::size_t n = 0; n < program.launches.size(); ++n) {
    const KernelLaunch& launch = program.launches[n];
    kernels.push_back(kernel_json(lowered.kernels[n], launch, values.at(launch.grid_x), document));
  }
  for (const WorkspaceSlot& slot : program.slots) slots[slot.name] = values.bytes(slot.size);
  return {{"shape", shape.text()},
          {"kernels", kernels},
          {"workspace", slots},
          {"workspace_bytes", workspace_bytes(program, values)}};
}

}  // namespace lacuna::tools
