// Kernels, arguments and workspace of specs whose work tiles are split.
#include <map>

#include "compiler/emit/emit.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

Plan plan_of(const std::string& fields, const char* target_name) {
  Diagnostics diagnostics;
  Plan plan = make_plan(read_document(fields), {}, target(target_name), diagnostics);
  EXPECT_EQ(text_of(diagnostics), "");
  return plan;
}

std::map<std::string, std::int32_t> values_of(const LaunchProgram& program,
                                              const LaunchShape& shape, std::int32_t sm_count) {
  std::vector<std::int32_t> values(program.values.size());
  EXPECT_TRUE(evaluate_launch_values(program, shape, values.data(), sm_count));
  std::map<std::string, std::int32_t> named;
  for (std::size_t n = 0; n < values.size(); ++n) named[program.values[n].name] = values[n];
  return named;
}

constexpr LaunchShape kLongShape{.n_b = 2, .n_h = 8, .n_h_kv = 2, .n_q = 300, .n_k = 131072};
constexpr const char* kSplit = R"("tile": {"q": 128, "k": 64, "split_kv": 4})";
constexpr const char* kWhole = R"("tile": {"q": 128, "k": 64})";

TEST(SplitKv, CombineFollowsAttend) {
  for (const char* target_name : {"sm_80", "sm_90a"}) {
    const LaunchProgram program = emit_launch_program(plan_of(kSplit, target_name));
    ASSERT_EQ(program.launches.size(), 2U);
    EXPECT_EQ(program.launches[0].name, "attend");
    EXPECT_EQ(program.launches[1].name, "combine");
    EXPECT_EQ(program.launches[1].entry, "lacuna_combine_made");
    EXPECT_EQ(program.cleared, (std::vector{TensorRole::kCounts, TensorRole::kTileMask}));
    const LaunchProgram whole = emit_launch_program(plan_of(kWhole, target_name));
    EXPECT_EQ(whole.launches.size(), 1U);
    EXPECT_TRUE(whole.cleared.empty());
  }
}

TEST(SplitKv, GridsAreOfItems) {
  const auto grids = [](const char* fields, const char* target_name, std::int32_t sm_count) {
    return values_of(emit_launch_program(plan_of(fields, target_name)), kLongShape, sm_count);
  };
  EXPECT_EQ(grids(kWhole, "sm_80", 132).at("grid"), 16 * 3);
  EXPECT_EQ(grids(kSplit, "sm_80", 132).at("grid"), 16 * 3 * 4);
  EXPECT_EQ(grids(kSplit, "sm_90a", 1000).at("grid"), 16 * 3 * 4);
  EXPECT_EQ(grids(kSplit, "sm_90a", 132).at("grid"), 132);
  EXPECT_EQ(grids(kSplit, "sm_80", 132).at("grid.combine"), 16 * 38) << "8 queries of 32 threads";
}

TEST(SplitKv, TheWorkspaceHoldsThePartialResults) {
  const LaunchProgram program = emit_launch_program(plan_of(kSplit, "sm_90a"));
  const auto values = values_of(program, kLongShape, 132);
  EXPECT_EQ(values.at("partial_o.size") * kWorkspaceUnitBytes, 4 * 16 * 300 * 128 * 4);
  EXPECT_GE(values.at("partial_lse.size") * kWorkspaceUnitBytes, 4 * 16 * 300 * 4);
  EXPECT_EQ(values.at("next_row.end"),
            values.at("partial_o.size") + values.at("partial_lse.size") + 1);
  const std::string text = print_launch_program(program);
  for (const char* line : {"zeros counts\n", "zeros tile_mask\n", "= workspace partial_o\n",
                           "= workspace partial_lse\n"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

/// Sources without are those that there were before: their kernels are, too.
TEST(SplitKv, OnlySplitKvAreInTheSource) {
  const SpecDocument document = read_document(kSplit);
  const std::string split = source_text(emit_cuda(plan_of(kSplit, "sm_90a"), document));
  for (const char* line :
       {"#include \"args/split_args.cuh\"\n", "  lacuna::SplitArgs split;\n",
        "  static constexpr int kSplitKv = 4;\n", "struct CombineConfig : CommonConfig {\n",
        "  lacuna::combine_shares<CombineConfig, Hooks>(args);\n"})
    EXPECT_NE(split.find(line), std::string::npos) << line;
  const std::string whole =
      source_text(emit_cuda(plan_of(kWhole, "sm_90a"), read_document(kWhole)));
  for (const char* word : {"split", "Split", "ombine"})
    EXPECT_EQ(whole.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace lacuna
