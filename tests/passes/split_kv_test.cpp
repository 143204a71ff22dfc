// Whether the tiles of a row are shared out, and what follows for the family and its tiles.
#include "compiler/target/plan_values.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

AttendPlan plan(const SpecDocument& document, const BuildOptions& options = {},
                const char* target_name = "sm_90a") {
  Diagnostics diagnostics;
  const Plan made = make_plan(document, options, target(target_name), diagnostics);
  EXPECT_EQ(text_of(diagnostics), "");
  return made.attend;
}

std::string text_of(const Chosen<int>& chosen) {
  return std::to_string(chosen.value) + " " + std::string(name_of(chosen.origin)) + ": " +
         chosen.reason;
}

BuildOptions tuned(int split_kv) {
  TunedTiles tiles{128, 64, 2, {}, "record 7"};
  tiles.split_kv = split_kv;
  return {.tuned = tiles};
}

TEST(SplitKv, AreWholeUnlessSomebodySaysOtherwise) {
  EXPECT_EQ(text_of(plan(make_document()).split_kv),
            "1 default: rows are split only where a measurement was better");
  EXPECT_EQ(text_of(plan(read_document(R"("tile": {"split_kv": 4})")).split_kv), "4 spec: ");
  EXPECT_EQ(text_of(plan(read_document(R"("tile": {"split_kv": [8, 2]})")).split_kv),
            "8 spec: first of the list that fits");
}

TEST(SplitKv, AreAsMeasuredWhereTheSpecLeavesThemOpen) {
  EXPECT_EQ(text_of(plan(make_document(), tuned(8)).split_kv), "8 tuned: record 7");
  EXPECT_EQ(plan(make_document(), tuned(0)).split_kv.value, 1) << "not measured";
  const SpecDocument list = read_document(R"("tile": {"split_kv": [4, 2]})");
  EXPECT_EQ(text_of(plan(list, tuned(2)).split_kv), "2 tuned: record 7");
  EXPECT_EQ(plan(list, tuned(8)).split_kv.value, 4);
  const SpecDocument written = read_document(R"("tile": {"split_kv": 4})");
  EXPECT_EQ(text_of(plan(written, tuned(8)).split_kv), "4 spec: ");
}

TEST(SplitKv, StayWholeUnderAGate) {
  const std::string reason = "what a gate decides depends on the tiles before in the row";
  EXPECT_EQ(text_of(plan(make_document(true)).split_kv), "1 default: " + reason);
  EXPECT_EQ(text_of(plan(make_document(true), tuned(8)).split_kv), "1 default: " + reason);
  const SpecDocument list = read_document(
      R"("gate": {"skip": "gap < -9", "skips": ["pv"]}, "tile": {"split_kv": [4, 1]})");
  EXPECT_EQ(text_of(plan(list).split_kv), "1 derived: " + reason);
}

TEST(SplitKv, ColumnsAreGatheredByOneBlock) {
  const std::string columns = R"("predictor": {"tile": {"k": 16}, "keep": "k0 < 128"})";
  const AttendPlan open = plan(read_document(columns));
  EXPECT_EQ(open.loader.value, Loader::kGather);
  EXPECT_EQ(text_of(open.split_kv), "1 default: the columns of a row are gathered by one block");
  const AttendPlan split = plan(read_document(columns + R"(, "tile": {"split_kv": 4})"));
  EXPECT_NE(split.loader.value, Loader::kGather) << "which goes without gathering";
  EXPECT_EQ(split.split_kv.value, 4);
}

TEST(SplitKv, ThreeWarpgroupsHaveNoRegistersForPartialResults) {
  const AttendPlan narrow = plan(read_document(R"("tile": {"split_kv": 4})"), {.head_dim = 64});
  EXPECT_EQ(narrow.family.value, AttendFamily::kWgmma);
  EXPECT_EQ(narrow.tile_q.value, 128);
  const AttendPlan wide =
      plan(read_document(R"("tile": {"q": 192, "k": 64, "split_kv": 4})"), {.head_dim = 64});
  EXPECT_EQ(wide.family.value, AttendFamily::kMma);
  EXPECT_EQ(wide.family.reason,
            "tile.q = 192: three warpgroups have no registers for partial results");
}

TEST(SplitKv, StayWholeWithE4m3Values) {
  const SpecDocument document =
      read_document(R"("quantise": {"qk": {"bits": 8}, "v": {"bits": 8}})");
  for (const char* name : {"sm_80", "sm_90a"}) {
    EXPECT_EQ(
        text_of(plan(document, tuned(8), name).split_kv),
        "1 default: weights are rounded to e4m3 by the largest of the tiles before in the row")
        << name;
  }
}

TEST(SplitKv, ThePlanSaysSo) {
  const auto printed = [](const SpecDocument& document) {
    Diagnostics diagnostics;
    return print_plan(make_plan(document, {}, target("sm_80"), diagnostics));
  };
  const std::string line = "tile.split_kv = ";
  EXPECT_EQ(printed(make_document()).find(line), std::string::npos);
  EXPECT_NE(printed(read_document(R"("tile": {"split_kv": 4})")).find(line + "4"),
            std::string::npos);
}

}  // namespace
}  // namespace lacuna
