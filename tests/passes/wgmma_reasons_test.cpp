// What the plan of the wgmma family says of its stages and its consumer.
#include "tests/passes/planned_wgmma.hpp"

namespace lacuna {
namespace {

TEST(WgmmaReasons, StagesOf8BitTilesAreAsManyAsFit) {
  const SpecDocument document =
      read_document(R"("quantise": {"qk": {"bits": 8}}, "tile": {"q": 128, "k": 128})");
  const AttendPlan four = planned(document).attend();
  EXPECT_EQ(four.stages.value, 4);
  EXPECT_EQ(four.stages.reason, "tiles of 8 bits are small, and soon multiplied");
  const SpecDocument asked = read_document(
      R"("quantise": {"qk": {"bits": 8}}, "tile": {"q": 128, "k": 128, "stages": [3, 2]})");
  EXPECT_EQ(planned(asked).attend().stages.reason, "first of the list that fits");
}

TEST(WgmmaReasons, MeasuredTilesSayNothingOfTheirStages) {
  TunedTiles tiles;
  tiles.tile_q = 128, tiles.tile_k = 64, tiles.record = "measured here";
  const AttendPlan attend = planned(make_document(true), {.head_dim = 64, .tuned = tiles}).attend();
  EXPECT_EQ(attend.tile_k.reason, "measured here");
  EXPECT_EQ(attend.stages.value, 2);
  EXPECT_EQ(attend.stages.reason, "the least: one tile is loaded while another is multiplied");
}

/// What `consumer` says of a kernel that is no ChainedConsumer.
std::string unchained(const std::string& fields, const BuildOptions& options = {}) {
  const AttendPlan attend = planned(read_document(fields), options).attend();
  EXPECT_EQ(attend.consumer.value, Consumer::kWgmma) << fields;
  constexpr std::string_view kBegin =
      "operands of 16 bits; O is stored before the next row begins: ";
  EXPECT_TRUE(attend.consumer.reason.starts_with(kBegin)) << attend.consumer.reason;
  return attend.consumer.reason.substr(kBegin.size());
}

TEST(WgmmaReasons, TheConsumerSaysWhatKeepsRowsFromFollowingOneAnother) {
  const std::string columns = R"("predictor": {"tile": {"q": 128, "k": 1}, "keep": "k0 < 128"})";
  const std::string lists = R"("mask": "external", "tile": {"q": 64, "k": 64})";
  const std::string gate = R"("gate": {"scope": "warp", "skip": "gap < 1", "skips": ["pv"]})";
  const std::string nothing = R"("doc": "")";
  EXPECT_EQ(unchained(columns), "of gathered keys the next ones are known too late");
  EXPECT_EQ(unchained(lists), "of two lists the next tiles are known too late");
  EXPECT_EQ(unchained(nothing, {.batch = BatchLayout::kSequences}),
            "of sequences the next item is known too late");
  EXPECT_EQ(unchained(nothing, {.head_dim = 64}), "3 warpgroups have no registers for queries");
  EXPECT_EQ(unchained(nothing, {.head_dim = 256}),
            "rows of 256 elements leave queries no registers");
  EXPECT_EQ(unchained(gate), "a gate takes the registers of the next scores");
  EXPECT_EQ(unchained(R"("tile": {"split_kv": 4})"),
            "partial results take the registers of the next scores");
  EXPECT_EQ(unchained(R"("tile": {"stages": 3})"),
            "shared memory has no place for the next queries");
}

}  // namespace
}  // namespace lacuna
