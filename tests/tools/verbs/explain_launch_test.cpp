// What explain says of a launch: its kernels, and the memory that they share.
#include "tools/verbs/explain_launch.hpp"

#include <gtest/gtest.h>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"
#include "tests/tools/command.hpp"

namespace lacuna::tests {
namespace {

/// A shipped spec on its way to a launch.
struct Lowering {
  SpecDocument document;
  LoweredPlan lowered;
  LaunchProgram program;

  std::string print(const LaunchShape& shape) const {
    return tools::print_launch(lowered, program, shape, false);
  }
  nlohmann::ordered_json json(const LaunchShape& shape) const {
    return tools::launch_json(lowered, program, document, shape);
  }
};

Lowering lower(const std::string& spec, const char* target) {
  Diagnostics diagnostics;
  SpecDocument document =
      read_spec({spec, read_bytes(source_file("specs/" + spec + ".json"))}, diagnostics);
  const Plan plan = make_plan(document, {}, *find_target(target), diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
  return {std::move(document), lower_plan(plan), emit_launch_program(plan)};
}

constexpr LaunchShape kLaunchShape{2, 8, 4, 1000, 3000};

TEST(ExplainLaunch, KernelsAndSlotsAreThoseOfTheLaunch) {
  const Lowering sparge = lower("sparge", "sm_90a");
  const LaunchProgram& program = sparge.program;
  std::vector<std::int32_t> values(program.values.size());
  ASSERT_TRUE(evaluate_launch_values(program, kLaunchShape, values.data()));
  const auto at = [&](int index) { return values[static_cast<std::size_t>(index)]; };
  const auto document = sparge.json(kLaunchShape);
  EXPECT_EQ(document["shape"], "b=2, h=8, h_kv=4, n_q=1000, n_k=3000");
  const auto& kernels = document["kernels"];
  ASSERT_EQ(kernels.size(), program.launches.size());
  for (std::size_t n = 0; n < kernels.size(); ++n) {
    const KernelLaunch& launch = program.launches[n];
    EXPECT_EQ(kernels[n]["kernel"], launch.name);
    EXPECT_EQ(kernels[n]["entry"], launch.entry);
    EXPECT_EQ(kernels[n]["blocks"], at(launch.grid_x)) << launch.name;
    EXPECT_EQ(kernels[n]["threads"], launch.threads) << launch.name;
    EXPECT_EQ(kernels[n]["smem_bytes"], launch.smem_bytes) << launch.name;
    EXPECT_EQ(kernels[n]["decides"], launch.name == "estimate") << launch.name;
  }
  std::uint64_t sum = 0;
  for (const auto& bytes : document["workspace"]) sum += bytes.get<std::uint64_t>();
  EXPECT_EQ(document["workspace_bytes"], sum);
  EXPECT_EQ(sum, static_cast<std::uint64_t>(at(program.workspace_value)) * kWorkspaceUnitBytes);
}

TEST(ExplainLaunch, TheTableNamesThemAndLeavesOutSlotsWithoutBytes) {
  const Lowering sparge = lower("sparge", "sm_90a");
  const LaunchProgram& program = sparge.program;
  const std::string text = sparge.print(kLaunchShape);
  for (const KernelLaunch& launch : program.launches)
    EXPECT_NE(text.find("\n  " + launch.name + " "), std::string::npos) << text;
  const std::size_t decides = text.find("a kept selection is good\n");
  EXPECT_EQ(text.rfind("\n  estimate ", decides), text.rfind('\n', decides)) << text;
  EXPECT_EQ(text.find("a kept selection is good", decides + 1), std::string::npos) << text;
  constexpr LaunchShape kWithoutKeys{1, 2, 2, 128, 0};
  std::vector<std::int32_t> values(program.values.size());
  ASSERT_TRUE(evaluate_launch_values(program, kWithoutKeys, values.data()));
  const std::string less = sparge.print(kWithoutKeys);
  int left_out = 0;
  for (const WorkspaceSlot& slot : program.slots) {
    const bool is_empty = values[static_cast<std::size_t>(slot.size)] == 0;
    EXPECT_EQ(less.find("\n  " + slot.name + " ") == std::string::npos, is_empty) << slot.name;
    left_out += is_empty;
  }
  EXPECT_GT(left_out, 0);
}

TEST(ExplainLaunch, AKernelWithoutAWorkspaceHasNoTableOfIt) {
  const std::string text = lower("dense", "sm_80").print(kLaunchShape);
  EXPECT_TRUE(text.starts_with("\nA launch at b=2, h=8, h_kv=4, n_q=1000, n_k=3000:\n")) << text;
  EXPECT_EQ(text.find("workspace"), std::string::npos) << text;
}

TEST(ExplainLaunch, BlocksThatStayAreNoMoreThanTheMultiprocessors) {
  const std::string wgmma = lower("dense", "sm_90a").print(kLaunchShape);
  EXPECT_NE(wgmma.find("min(128, SMs)"), std::string::npos) << wgmma;
  const std::string mma = lower("dense", "sm_80").print(kLaunchShape);
  EXPECT_EQ(mma.find("SMs"), std::string::npos) << mma;
}

TEST(ExplainLaunch, SlotsSayWhichKernelsFillAndReadThem) {
  const std::string text = lower("sparge", "sm_90a").print(kLaunchShape);
  const std::size_t at = text.find("\n  list_counts ");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  EXPECT_NE(line.find(" compact "), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with(" order_rows, attend")) << line;
}

TEST(ExplainLaunch, WhatCannotBeCountedIsSaid) {
  const Lowering sparge = lower("sparge", "sm_90a");
  constexpr LaunchShape kVast{1 << 20, 1 << 10, 1 << 10, 1 << 20, 1 << 20};
  EXPECT_TRUE(sparge.json(kVast).is_null());
  EXPECT_EQ(sparge.print(kVast),
            "\nThe workspace at b=1048576, h=1024, h_kv=1024, n_q=1048576, n_k=1048576 is beyond "
            "what 31 bits can count.\n");
}

}  // namespace
}  // namespace lacuna::tests
