// Shipped specs serve batches of sequences, in rows and in pages: all of them.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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
    const bool is_mma = plan.attend.family.value == AttendFamily::kMma;
    const bool has_others = std::ranges::any_of(lowered.kernels, [](const Kernel& kernel) {
      return !kernel.attends && kernel.name != "merge_branch";
    });
    EXPECT_EQ(lowered.each_sequence, is_mma || has_others);
    EXPECT_FALSE(lowered.kernels.empty());
  }
  std::string text;
  for (const Diagnostic& d : diagnostics.items) {
    if (d.severity == Severity::kError) text += d.message;
  }
  return text;
}

/// Of a shipped spec with one attend, for sm_90a.
Plan plan_of_batch(const std::string& name, BatchLayout batch) {
  Diagnostics diagnostics;
  const fs::path path = LACUNA_SOURCE_DIR "/specs/" + name + ".json";
  const SpecDocument document = read_spec({path, test::read_file(path)}, diagnostics);
  BuildOptions options;
  options.batch = batch;
  return make_plan(document, options, find_target("sm_90a").value(), diagnostics);
}

bool is_attend(const KernelLaunch& launch) {
  return launch.name == "attend" || launch.name == "attend_packed";
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

/// Tokens as they are, means, and tiles of each head. What runs before attend or behind it does so
/// for each sequence, and finds the sums in front.
TEST(Batches, BranchesTakeWgmma) {
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
    EXPECT_EQ(program.each_sequence, branch.spec.branch.name != "window");
    EXPECT_GE(program.shared_value, 0);
    for (const WorkspaceSlot& slot : program.slots)
      EXPECT_EQ(slot.region == SlotRegion::kShared, slot.name.starts_with("sum_")) << slot.name;
    for (const KernelLaunch& launch : program.launches)
      EXPECT_EQ(launch.each_sequence, !is_wgmma || !is_attend(launch)) << launch.name;
  }
  EXPECT_EQ(found, "compressed: wgmma\nselected: wgmma\nwindow: wgmma\n");
}

/// Where attend takes items of all sequences and kernels before it have a piece of the workspace
/// for each, what attend needs lies in front of the pieces, once.
TEST(Batches, ListsOfEachSequenceLieBehindTheSchedule) {
  const Plan plan = plan_of_batch("flexprefill", BatchLayout::kSequences);
  const LaunchProgram program = emit_launch_program(plan);
  const LaunchShape shape{.n_b = 7, .n_h = 8, .n_h_kv = 2, .n_q = 300, .n_k = 500};
  std::vector<std::int32_t> values(program.values.size());
  ASSERT_TRUE(evaluate_launch_values(program, shape, values.data(), 132));
  const auto at = [&](int value) { return values[static_cast<std::size_t>(value)]; };
  constexpr std::string_view kOfSchedule[] = {"next_row",  "sequences",   "first_items", "maps",
                                              "partial_o", "partial_lse", "arrivals"};
  std::int32_t batch = 0, own = 0;
  for (const WorkspaceSlot& slot : program.slots) {
    const bool is_of_batch = slot.region == SlotRegion::kBatch;
    const bool is_packed = slot.name.starts_with("packed_");
    const bool is_of_attend =
        std::ranges::count(kOfSchedule, slot.name.substr(is_packed ? 7 : 0)) > 0;
    EXPECT_EQ(is_of_batch, is_of_attend) << slot.name;
    EXPECT_EQ(at(slot.offset), is_of_batch ? batch : own) << slot.name;
    (is_of_batch ? batch : own) += at(slot.size);
    if (slot.name == "sequences") EXPECT_EQ(at(slot.size), (7 * 64 + 255) / 256);
    if (slot.name == "list_counts") EXPECT_EQ(at(slot.size), 8 * 1);  // of one sequence
  }
  EXPECT_EQ(at(program.batch_value), batch);
  EXPECT_EQ(at(program.workspace_value), own);
  EXPECT_TRUE(program.each_sequence);
  for (const KernelLaunch& launch : program.launches)
    EXPECT_EQ(launch.each_sequence, !is_attend(launch)) << launch.name;
}

/// Where a predictor lists tiles for each head, sequences of few queries are those of a second
/// attend, with a schedule and boxes of its own; and the first is left out where all are.
TEST(Batches, FewQueriesHaveAnAttendOfTheirOwn) {
  const Plan plan = plan_of_batch("topk-blocks", BatchLayout::kSequences);
  const LaunchProgram program = emit_launch_program(plan);
  ASSERT_GE(program.launches.size(), 2U);
  const KernelLaunch& packed = program.launches.back();
  const KernelLaunch& usual = program.launches[program.launches.size() - 2];
  EXPECT_EQ(packed.name, "attend_packed");
  EXPECT_TRUE(packed.is_packed && !usual.is_packed);
  const auto blocks_of = [&](const KernelLaunch& launch, int heads, int heads_kv, int n_q) {
    const LaunchShape shape{.n_b = 3, .n_h = heads, .n_h_kv = heads_kv, .n_q = n_q, .n_k = 500};
    std::vector<std::int32_t> values(program.values.size());
    EXPECT_TRUE(evaluate_launch_values(program, shape, values.data(), 132));
    return values[static_cast<std::size_t>(launch.grid_x)];
  };
  EXPECT_EQ(blocks_of(packed, 8, 2, 32), 132);
  EXPECT_EQ(blocks_of(usual, 8, 2, 32), 0);
  EXPECT_EQ(blocks_of(usual, 8, 2, 33), 132);
  EXPECT_EQ(blocks_of(usual, 2, 2, 1), 132) << "heads do not share keys";
  EXPECT_EQ(blocks_of(usual, 65, 1, 1), 132) << "more heads than rows of a warpgroup";
  ASSERT_EQ(program.packed.maps.size(), program.maps.size());
  for (std::size_t n = 0; n < program.maps.size(); ++n) {
    const bool is_of_queries = program.maps[n].name == "q" || program.maps[n].name == "o";
    EXPECT_EQ(program.packed.maps[n].box_heads_field >= 0, is_of_queries) << program.maps[n].name;
    EXPECT_LT(program.maps[n].box_heads_field, 0);
  }
  for (const ArgField& field : program.packed.fields) {
    const auto usual_field = std::ranges::find(program.fields, field.name, &ArgField::name);
    ASSERT_NE(usual_field, program.fields.end());
    EXPECT_EQ(usual_field->offset, field.offset) << field.name;
    EXPECT_NE(usual_field->index, field.index) << field.name;
  }
}

/// Gates, too: of rows that are not split where there are more of them than multiprocessors.
TEST(Batches, GatesOfFewQueriesHaveAnAttendOfTheirOwn) {
  for (const auto& [name, least_sequences] :
       {std::pair{"bsfa", 1}, std::pair{"skip-softmax", 17}}) {
    const Plan plan = plan_of_batch(name, BatchLayout::kPages);
    const LaunchProgram program = emit_launch_program(plan);
    ASSERT_TRUE(plan.packed.has_value()) << name;
    const auto is_packed = [&](int sequences, int heads, int n_q) {
      const LaunchShape shape{.n_b = sequences, .n_h = heads, .n_h_kv = 1, .n_q = n_q, .n_k = 500};
      std::vector<std::int32_t> values(program.values.size());
      EXPECT_TRUE(evaluate_launch_values(program, shape, values.data(), 132));
      const auto blocks = [&](std::size_t n) {
        return values[static_cast<std::size_t>(program.launches[n].grid_x)];
      };
      EXPECT_EQ(blocks(0), blocks(1) == 0 || n_q > 16 ? 132 : 0) << name << " " << heads;
      return blocks(1) != 0;
    };
    EXPECT_TRUE(is_packed(least_sequences, 8, 8)) << name;
    if (least_sequences > 1) EXPECT_FALSE(is_packed(least_sequences - 1, 8, 8)) << name;
    EXPECT_TRUE(is_packed(200, 4, 16)) << name;
    EXPECT_TRUE(is_packed(200, 4, 17)) << name << ": some sequences may have fewer";
    EXPECT_TRUE(is_packed(200, 64, 1)) << name;
    EXPECT_FALSE(is_packed(200, 65, 1)) << name;
  }
}

/// Not where more than a list differs by head, nor where one kernel packs all.
TEST(Batches, OtherSpecsHaveOneAttend) {
  for (const char* name : {"dense", "sparge", "quest", "external-mask"}) {
    const Plan plan = plan_of_batch(name, BatchLayout::kPages);
    EXPECT_FALSE(plan.packed.has_value()) << name;
    EXPECT_TRUE(emit_launch_program(plan).packed.fields.empty()) << name;
  }
}

/// What bounds say little of: each sequence is asked in the mma family; by wgmma only for lists,
/// before a predictor makes them.
TEST(Batches, PairsAreAskedWhereAKernelKnowsTiles) {
  Diagnostics diagnostics;
  const auto with_mask = [&](const std::string& rest) {
    return read_spec(
        {"x",
         R"({"version": 1, "name": "x", "attention": {"mask": "q % 24 == k % 24"})" + rest + "}"},
        diagnostics);
  };
  const SpecDocument document = with_mask("");
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
  const SpecDocument predicts =
      with_mask(R"(, "predictor": {"tile": {"q": 128, "k": 64}, "keep": "j <= visible // 2"})");
  const LaunchProgram lists =
      emit_launch_program(make_plan(predicts, options, find_target("sm_90a").value(), diagnostics));
  ASSERT_GE(lists.launches.size(), 3U);
  EXPECT_EQ(lists.launches[0].name, "pairs");
  EXPECT_EQ(lists.launches[1].name, "select");
}

}  // namespace
}  // namespace lacuna
