// Shipped specs serve batches of sequences, in rows and in pages: all of them.
#include <filesystem>
#include <string>

#include "tests/emit/plans.hpp"
#include "tests/ir/programs.hpp"
#include "tests/spec/golden_file.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// The errors of a plan for the batch, of one attend; where there are none, the kernels are made
/// too.
std::string refusal(const SpecDocument& document, const char* target, BatchLayout batch) {
  BuildOptions options;
  options.batch = batch;
  Diagnostics diagnostics;
  const Plan plan = make_plan(document, options, find_target(target).value(), diagnostics);
  if (!diagnostics.has_errors()) {
    const LoweredPlan lowered = lower_plan(plan);
    EXPECT_EQ(lowered.each_sequence, plan.attend.family.value == AttendFamily::kMma);
    EXPECT_FALSE(lowered.kernels.empty());
  }
  std::string text;
  for (const Diagnostic& d : diagnostics.items) {
    if (d.severity == Severity::kError) text += d.message;
  }
  return text;
}

TEST(Batches, EverySpecServesSequences) {
  int served = 0;
  for (const auto& entry : fs::directory_iterator(LACUNA_SOURCE_DIR "/specs")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".json" || path.stem() == "schema") continue;
    Diagnostics diagnostics;
    const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
    for (const SpecDocument& attend : branch_documents(document)) {
      for (const char* target : {"sm_80", "sm_90a"}) {
        for (const BatchLayout batch : {BatchLayout::kSequences, BatchLayout::kPages}) {
          EXPECT_EQ(refusal(attend, target, batch), "") << path;
          ++served;
        }
      }
    }
  }
  EXPECT_GE(served, 4 * 48);  // of nsa, vsa and differential each branch
}

/// Tokens as they are by wgmma; what of a branch belongs to one head, or lies in a piece of each
/// sequence, by mma. merge_branch runs for each sequence either way, and finds the sums in front.
TEST(Batches, BranchesOfTokensTakeWgmma) {
  Diagnostics diagnostics;
  const fs::path path = LACUNA_SOURCE_DIR "/specs/nsa.json";
  const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
  std::string found;
  for (const SpecDocument& branch : branch_documents(document)) {
    BuildOptions options;
    options.batch = BatchLayout::kPages;
    const Plan plan = make_plan(branch, options, find_target("sm_90a").value(), diagnostics);
    const LaunchProgram program = emit_launch_program(plan);
    const bool is_wgmma = plan.attend.family.value == AttendFamily::kWgmma;
    found += branch.spec.branch.name + ": " +
             (is_wgmma ? std::string("wgmma") : plan.attend.family.reason) + "\n";
    EXPECT_EQ(program.each_sequence, !is_wgmma);
    EXPECT_GE(program.shared_value, 0);
    for (const WorkspaceSlot& slot : program.slots)
      EXPECT_EQ(slot.is_shared, slot.name.starts_with("sum_")) << slot.name;
    for (const KernelLaunch& launch : program.launches)
      EXPECT_EQ(launch.each_sequence, !is_wgmma || launch.name == "merge_branch") << launch.name;
  }
  EXPECT_EQ(found,
            "compressed: a batch of pages: its heads share work tiles, and rows that are made lie "
            "in the piece of each sequence\n"
            "selected: a batch of pages: its heads share work tiles, and lists are of one head\n"
            "window: wgmma\n");
}

/// What bounds say little of: each sequence is asked in the mma family, none by wgmma.
TEST(Batches, PairsAreAskedWhereAKernelKnowsTiles) {
  Diagnostics diagnostics;
  const SpecDocument document =
      read_spec({"x", R"({"version": 1, "name": "x", "attention": {"mask": "q % 24 == k % 24"}})"},
                diagnostics);
  BuildOptions options;
  options.batch = BatchLayout::kSequences;
  const Plan mma = make_plan(document, options, find_target("sm_80").value(), diagnostics);
  const LaunchProgram program = emit_launch_program(mma);
  ASSERT_EQ(program.launches.size(), 2U);
  EXPECT_EQ(program.launches[0].name, "pairs");
  EXPECT_TRUE(program.launches[0].each_sequence);
  const Plan wgmma = make_plan(document, options, find_target("sm_90a").value(), diagnostics);
  EXPECT_FALSE(attend_of(wgmma.program).pairs);
  EXPECT_EQ(wgmma.attend.pairs.reason,
            "a batch of sequences by wgmma: no kernel knows its tiles before attend");
}

}  // namespace
}  // namespace lacuna
