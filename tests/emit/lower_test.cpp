// What holds of the kernels of every shipped spec: each value has a reason, and what a kernel reads
// is there when it runs.
#include <filesystem>
#include <set>

#include "compiler/emit/block_layout.hpp"
#include "compiler/target/plan_values.hpp"
#include "tests/emit/plans.hpp"
#include "tests/ir/programs.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// The plans of each shipped spec, for an architecture of each family.
std::vector<Plan> shipped_plans() {
  std::vector<Plan> plans;
  for (const auto& entry : fs::directory_iterator(LACUNA_SOURCE_DIR "/specs")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".json" || path.stem() == "schema") continue;
    Diagnostics diagnostics;
    const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
    for (const SpecDocument& attend : branch_documents(document))
      for (const char* target : {"sm_80", "sm_90a"})
        plans.push_back(make_plan(attend, {}, find_target(target).value(), diagnostics));
    EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  }
  EXPECT_GE(plans.size(), 40u);
  return plans;
}

TEST(Lower, EveryValueHasAReason) {
  for (const Plan& plan : shipped_plans()) {
    for (const Kernel& kernel : lower_plan(plan).kernels) {
      const std::string which = plan.program.name + " " + kernel.name;
      EXPECT_NE(kernel.because, "") << which;
      EXPECT_NE(kernel.grid.reason, "") << which;
      EXPECT_NE(kernel.threads.reason, "") << which;
      EXPECT_NE(kernel.smem_bytes.reason, "") << which;
      EXPECT_NE(kernel.registers.reason, "") << which;
      for (const ConfigField& field : kernel.config)
        EXPECT_TRUE(*field.pointer != '\0' || !field.reason.empty()) << which << " " << field.name;
    }
  }
}

/// What a thread may have is what the resident blocks leave, and the plan asks attend for no more:
/// in the mma family at once, in the wgmma family by setmaxnreg.
TEST(Lower, RegistersAgreeWithThePlan) {
  for (const Plan& plan : shipped_plans()) {
    for (const Kernel& kernel : lower_plan(plan).kernels) {
      const std::string which = plan.program.name + " " + kernel.name;
      const int threads = kernel.threads.value * kernel.resident_blocks.value;
      EXPECT_LE(kernel.registers.value * threads, plan.target.registers_per_sm) << which;
      EXPECT_TRUE(kernel.registers.value == plan.target.registers_per_thread ||
                  (kernel.registers.value + 8) * threads > plan.target.registers_per_sm)
          << which;
      if (kernel.name != "attend") continue;
      EXPECT_EQ(kernel.resident_blocks.value, 1) << which;
      const bool is_dealt_out = kernel.registers.reason.find("setmaxnreg") != std::string::npos;
      EXPECT_EQ(is_dealt_out, plan.attend.family.value == AttendFamily::kWgmma) << which;
      if (!is_dealt_out) {
        EXPECT_GE(kernel.registers.value, plan.attend.registers.value) << which;
      }
    }
  }
}

TEST(Plans, EveryDerivedValueHasAReason) {
  for (const Plan& plan : shipped_plans()) {
    for (const PlanValue& value : plan_values(plan)) {
      EXPECT_TRUE(value.origin != Origin::kDerived || !value.reason.empty())
          << plan.program.name << " " << value.name;
    }
  }
}

/// Members of the argument block that are tensors: "q", "caller_o", "list_indices".
std::set<std::string_view> tensors_of_arguments() {
  std::set<std::string_view> names;
  const auto add = [&](std::span<const BlockMember> members) {
    for (const BlockMember& member : members) {
      const std::string_view name = member.name;
      if (member.source == FieldSource::kTensorData) names.insert(name.substr(0, name.find('.')));
    }
  };
  add(attend_members());
  add(predict_members());
  return names;
}

TEST(Lower, KernelsReadWhatIsThere) {
  for (const Plan& plan : shipped_plans()) {
    std::set<std::string_view> there = tensors_of_arguments();
    std::set<std::string> names;
    // Lists that a kernel makes are not there before it has made them.
    if (find_op<Compact>(plan.program) != nullptr)
      for (const char* list : {"list_indices", "list_counts"}) there.erase(list);
    for (const Kernel& kernel : lower_plan(plan).kernels) {
      EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
      for (const std::string_view operand : kernel.operands)
        EXPECT_TRUE(there.contains(operand))
            << plan.program.name << " " << kernel.name << " " << operand;
      for (const Slot& slot : kernel.slots) there.insert(slot.name);
    }
  }
}

TEST(Lower, ReasonsSayWhereNumbersComeFrom) {
  const LoweredPlan lowered = lower_plan(plan_of_text(kPredictedText));
  const auto kernel = [&](std::string_view name) {
    return *std::ranges::find(lowered.kernels, name, &Kernel::name);
  };
  EXPECT_EQ(kernel("prepare_q").grid.reason, "one for each 128 tokens of a head, padded to 256");
  EXPECT_EQ(kernel("prepare_q").smem_bytes.reason, "256 tokens * 20 + 8 warps * (4 + 2 * 128 * 4)");
  EXPECT_EQ(kernel("estimate").because, "queries are compared with keys");
  EXPECT_EQ(kernel("order_rows").smem_bytes.value, 33856);
}

TEST(Lower, AMemoryThatSeveralKernelsUseIsAsLargeAsTheLargestNeeds) {
  const LoweredPlan lowered = lower_plan(plan_of_text(kPredictedText));
  const auto slot = std::ranges::find(lowered.slots, std::string_view("partial"), &Slot::name);
  ASSERT_NE(slot, lowered.slots.end());
  EXPECT_EQ(slot->units.substr(0, 24), "max(n_b * n_h * (((n_q +") << slot->units;
  EXPECT_EQ(std::ranges::count(lowered.slots, std::string_view("partial"), &Slot::name), 1);
}

}  // namespace
}  // namespace lacuna
