// Rules of attend about what other ops made, each broken once.
#include "tests/ir/violations.hpp"

namespace lacuna {
namespace {

class AttendRule : public testing::TestWithParam<TextViolation> {};

TEST_P(AttendRule, IsTheDiagnostic) {
  const TextViolation& violation = GetParam();
  EXPECT_EQ(verify_text(replaced(violation.text, violation.from, violation.to)),
            violation.messages);
}

const TextViolation kAttend[] = {
    {"Queries", kPredictedText, "attend %q_values", "attend %q_ordered",
     kQueriesAndKeysRule + "attend %o_ordered: " + kBiasRule},
    {"Scales", kPredictedText, "q_scale=%q_scale, k_scale=%k_scale, v_scale", "v_scale",
     kQueriesAndKeysRule + "attend %o_ordered: " + kBiasRule +
         "attend %o_ordered: groups of quantised q and k are those of attend's tiles\n"},
    {"GroupOfAttend", kPredictedText, "qk_group=warp", "qk_group=thread", kQueriesAndKeysRule},
    {"BitsOfAttend", kPredictedText, "mean=%q_mean, group=warp", "mean=%q_mean, bits=4, group=warp",
     kQueriesAndKeysRule},
    {"ValueScale", kPredictedText, "v_scale=%v_scale", "v_scale=%k_scale",
     "attend %o_ordered: v comes from the input of this name: as it is, permuted, or in e4m3 with "
     "its scale\n"},
    {"MissingBias", kPredictedText, "column_bias=%column_bias, qk_tile_q", "qk_tile_q",
     "attend %o_ordered: " + kBiasRule},
    {"BiasWithoutIntegers", kGatheredText, "columns=%kept", "columns=%kept, row_bias=%previous_lse",
     "attend %o: " + kBiasRule},
    {"GroupTiles", kPredictedText, "tile_q=64, tile_k=32 : [batch, heads, n_q, d] bf16",
     "tile_q=32, tile_k=32 : [batch, heads, n_q, d] bf16",
     "compact %list_indices: a tile of the bits is a whole number of attend's tiles, which may "
     "still be open (0)\nattend %o_ordered: groups of quantised q and k are those of attend's "
     "tiles\n"},
    {"ListsOfSelect", kPredictedText, "list_counts=%list_counts", "list_counts=%kept",
     "attend %o_ordered: list_indices and list_counts come together, from the inputs of these "
     "names or from a compact\n"},
    {"ColumnsOfSelect", kGatheredText, "keep_k=8, scale", "keep_k=16, scale",
     "attend %o: " + kColumnsRule},
    {"ColumnsOfRows", kGatheredText, "scale=0.125, tile_q=128, tile_k=64",
     "scale=0.125, tile_q=64, tile_k=64", "attend %o: " + kColumnsRule},
    {"NoColumns", kGatheredText, "columns=%kept, keep_k=8", "keep_k=8",
     "attend %o: " + kColumnsRule},
    {"ColumnsAndLists", kPredictedText, "attend %q_values, %k_values, %v_values,",
     "attend %q_values, %k_values, %v_values, columns=%kept, keep_k=64,",
     "attend %o_ordered: " + kColumnsRule +
         "attend %o_ordered: columns stand instead of lists\nattend %o_ordered: columns are "
         "gathered from 16-bit keys and values: groups of 8-bit ones are of neighbours\n"},
    {"GatedColumns", kGatheredText, "columns=%kept",
     "columns=%kept, gate={skip=\"gap < -9.0\", skips=[pv]}",
     "attend %o: gathered columns have no gate, which decides about neighbours, and go in "
     "ascending order\n"},
    {"PairsOfColumns", kGatheredText, "keep_k=8, scale=0.125, tile_q=128, tile_k=64",
     "keep_k=8, mask=\"k <= q\", scale=0.125, tile_q=128, tile_k=64, pairs=true",
     "attend %o: tiles that their pairs decide about are those of a mask, neither gathered nor the "
     "caller's\n"},
    {"DescendingColumns", kGatheredText, "columns=%kept", "columns=%kept, order=descending",
     "attend %o: gathered columns have no gate, which decides about neighbours, and go in "
     "ascending order\n"},
};
INSTANTIATE_TEST_SUITE_P(Ops, AttendRule, testing::ValuesIn(kAttend),
                         [](const auto& violation) { return violation.param.name; });

TEST(AttendRules, TilesMayStillBeOpen) {
  std::string text = kPredictedText;
  for (const auto& [from, to] : {std::pair{"qk_tile_q=64, qk_tile_k=32, ", ""},
                                 {"scale=0.08838835, tile_q=64, tile_k=32", "scale=0.08838835"},
                                 {"keep_k=64, tile_q=64, tile_k=32", "keep_k=64"},
                                 {"group=warp, tile=64", "group=warp"},
                                 {"group=warp, tile=32", "group=warp"}}) {
    text = replaced(text, from, to);
  }
  EXPECT_EQ(verify_text(text), "");
}
}  // namespace
}  // namespace lacuna
