// What a target makes of predictors and integers: what it takes, what it refuses and how it says
// so.
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

struct PlannedPredictor {
  Plan plan;
  std::string diagnostics;
};

PlannedPredictor plan(const SpecDocument& document, const char* target_name, int head_dim = 128) {
  Diagnostics diagnostics;
  Plan made = make_plan(document, {.head_dim = head_dim}, target(target_name), diagnostics);
  return {std::move(made), text_of(diagnostics)};
}

constexpr const char* kIntegers = R"("quantise": {"qk": {"bits": 8}, "v": {"bits": 8}})";

TEST(PredictorPlan, E4m3ValuesNeedAnMmaOfThem) {
  const SpecDocument document = read_document(kIntegers);
  const PlannedPredictor a100 = plan(document, "sm_80"), l40 = plan(document, "sm_89");
  EXPECT_EQ(find_op<QuantiseValues>(a100.plan.program), nullptr);
  EXPECT_EQ(a100.plan.attend.v_bits.value, 16);
  EXPECT_EQ(a100.plan.attend.v_bits.reason, "sm_80 has no mma of e4m3");
  EXPECT_NE(find_op<QuantiseValues>(l40.plan.program), nullptr);
  EXPECT_EQ(l40.plan.attend.v_bits.value, 8);
  EXPECT_EQ(plan(document, "cpu").plan.attend.v_bits.value, 8);
}

TEST(PredictorPlan, FourBitsAreMultipliedAsEight) {
  const SpecDocument document = read_document(
      R"("predictor": {"estimate": {"q": "tokens", "k": "tokens", "bits": 4}, "keep": "p > 0.1"})");
  const PlannedPredictor gpu = plan(document, "sm_90a"), cpu = plan(document, "cpu");
  EXPECT_EQ(gpu.plan.attend.estimate_bits.value, 4);
  EXPECT_EQ(gpu.plan.attend.estimate_product_bits.value, 8);
  EXPECT_EQ(gpu.plan.attend.estimate_product_bits.reason,
            "sm_90a has no mma of int4: the same integers in int8, the same logits");
  EXPECT_EQ(cpu.plan.attend.estimate_product_bits.value, 4);
  EXPECT_EQ(find_op<Quantise>(gpu.plan.program)->bits, 4) << "the integers stay those of the spec";
}

AttendFamily estimate_family(const std::string& predictor, const char* target_name,
                             int head_dim = 128) {
  const SpecDocument document = read_document(R"("predictor": {)" + predictor + "}");
  const PlannedPredictor made = plan(document, target_name, head_dim);
  EXPECT_EQ(made.diagnostics, "");
  return made.plan.attend.estimate_family.value;
}

/// `keep` after a tile and an estimate of pairs of integers, relative to a mass known before.
std::string pairs(const std::string& keep, const char* tile = R"({"q": 64, "k": 32})") {
  return std::string(R"("tile": )") + tile +
         R"(, "estimate": {"q": "tokens", "k": "tokens", "bits": 4, "reduce": "max",
             "reference": "k < 32"}, "keep": ")" +
         keep + "\"";
}

TEST(PredictorPlan, PairsOfIntegersAreComparedByWgmmaWhereBoundsDecide) {
  const auto is_wgmma = [](const std::string& predictor, const char* target_name = "sm_90a",
                           int head_dim = 128) {
    return estimate_family(predictor, target_name, head_dim) == AttendFamily::kWgmma;
  };
  for (const char* keep : {"p > 0.1", "p >= 0.1 or k0 < 32", "not (p <= 0.1) and i > j", "0.1 > p",
                           "sqrt(p) - 0.2 > 0.1", "i == j or p > 0.5"}) {
    EXPECT_TRUE(is_wgmma(pairs(keep))) << keep;
  }
  for (const char* keep : {"p > 0.1 and p < 0.2", "p == 0.5", "abs(p - 0.3) > 0.1", "rank < 4",
                           "p * p > 0.1", "score > 1"}) {
    EXPECT_FALSE(is_wgmma(pairs(keep))) << keep;
  }
  EXPECT_FALSE(is_wgmma(pairs("p > 0.1"), "sm_89"));
  EXPECT_FALSE(is_wgmma(pairs("p > 0.1"), "sm_100a"));
  EXPECT_FALSE(is_wgmma(pairs("p > 0.1"), "sm_90a", 96));
  EXPECT_TRUE(is_wgmma(pairs("p > 0.1", R"({"q": 128, "k": 64})")));
  EXPECT_FALSE(is_wgmma(pairs("p > 0.1", R"({"q": 32, "k": 32})")));
  EXPECT_FALSE(is_wgmma(pairs("p > 0.1", R"({"q": 64, "k": 16})")));
}

TEST(PredictorPlan, TokensAsTheyAreAreComparedByWgmmaWhereKeysAreRows) {
  const auto is_wgmma = [](const std::string& keep, const char* tile,
                           const std::string& more = R"("reduce": "max")") {
    const std::string predictor = std::string(R"("tile": )") + tile +
                                  R"(, "estimate": {"q": "tokens", "k": "tokens", )" + more +
                                  R"(}, "keep": ")" + keep + "\"";
    return estimate_family(predictor, "sm_90a") == AttendFamily::kWgmma;
  };
  const char* keys = R"({"q": 128, "k": 1})";
  EXPECT_TRUE(is_wgmma("p > 0.1", keys));
  EXPECT_TRUE(is_wgmma("p > 0.1 and p < 0.2", keys));
  EXPECT_TRUE(is_wgmma("p > 0.1 or k0 < 32", R"({"q": 64, "k": 16})"));
  EXPECT_FALSE(is_wgmma("rank < 4", keys));
  EXPECT_FALSE(is_wgmma("p > 0.1", R"({"q": 64, "k": 32})"));
  EXPECT_FALSE(is_wgmma("p > 0.1", keys, R"("reduce": "sum")"));
  EXPECT_FALSE(is_wgmma("score > 0.1", keys, R"("reduce": "max", "normalise": "none")"));
}

TEST(PredictorPlan, CellsAreComparedByWgmmaInWholeTiles) {
  const auto is_wgmma = [](const std::string& tile, const std::string& summary,
                           const char* target_name = "sm_90a", int head_dim = 128) {
    const std::string predictor = R"("tile": )" + tile + R"(, "estimate": {"q": ")" + summary +
                                  R"(", "k": ")" + summary + R"("}, "keep": "rank < 4")";
    return estimate_family(predictor, target_name, head_dim) == AttendFamily::kWgmma;
  };
  const char* tile = R"({"q": 128, "k": 128})";
  EXPECT_TRUE(is_wgmma(tile, "antidiagonal(8)"));
  EXPECT_TRUE(is_wgmma(tile, "mean(8)"));
  EXPECT_TRUE(is_wgmma(R"({"q": 64, "k": 64})", "antidiagonal(4)", "sm_90a", 64));
  EXPECT_FALSE(is_wgmma(tile, "mean(8)", "sm_90a", 96)) << "rows of a panel are 64 elements";
  EXPECT_FALSE(is_wgmma(R"({"q": 64, "k": 192})", "antidiagonal(4)")) << "48 do not divide 256";
  EXPECT_FALSE(is_wgmma(tile, "mean(8)", "sm_80"));
}

TEST(PredictorPlan, TheFirstOfTwoStepsHasAFamilyOfItsOwn) {
  const SpecDocument document = read_document(
      R"json("predictor": [
           {"tile": {"q": 128, "k": 64}, "estimate": {"q": "mean(8)", "k": "mean(8)", "reduce": "max",
            "normalise": "row_max"}, "keep": "p > 0.1"
},
           {"tile": {"q": 128, "k": 64}, "within": true,
            "estimate": {"q": "tokens", "k": "tokens", "reduce": "max"}, "keep": "p > 0.1"}])json");
  const PlannedPredictor made = plan(document, "sm_90a");
  EXPECT_EQ(made.diagnostics, "");
  EXPECT_EQ(made.plan.attend.estimate_before_family.value, AttendFamily::kWgmma);
  EXPECT_EQ(made.plan.attend.estimate_family.value, AttendFamily::kMma);
}

TEST(PredictorPlan, AnEstimateHasToFitABlock) {
  const SpecDocument tokens = read_document(
      R"("predictor": {"estimate": {"q": "tokens", "k": "tokens"}, "keep": "p > 0.1"})");
  EXPECT_EQ(plan(tokens, "sm_89", 256).diagnostics,
            "error /predictor: an estimate of 128 rows at head_dim 256 needs 135168 bytes of "
            "shared memory, "
            "sm_89 has 101376 for a block\n"
            "note: (128 + 128) * 256 * 2 + 4096 bytes: the rows of a tile, 128 keys, and the rows' "
            "statistics\n"
            "help: nearest legal value: predictor.tile.q = 32\n");
  const SpecDocument last = read_document(
      R"json("predictor": {"estimate": {"q": "last(256)", "k": "tokens"}, "keep": "p > 0.1"})json");
  EXPECT_EQ(plan(last, "sm_120a").diagnostics,
            "error /predictor/estimate/q: an estimate of 256 rows at head_dim 128 needs 102400 "
            "bytes of shared memory, sm_120a has 101376 for a block\n"
            "note: (256 + 128) * 128 * 2 + 4096 bytes: the rows of a tile, 128 keys, and the rows' "
            "statistics\n"
            "help: nearest legal value: last(128)\n");
  const SpecDocument cells = read_document(
      R"json("predictor": {"estimate": {"q": "antidiagonal(8)", "k": "antidiagonal(8)"},
               "keep": "p > 0.1"})json");
  EXPECT_EQ(plan(cells, "sm_89").diagnostics, "");
}

TEST(PredictorPlan, TheColumnsOfAnEstimatedTileAreMultipliedInOneGo) {
  const SpecDocument keys = read_document(
      R"json("predictor": {"tile": {"q": 64, "k": 256}, "estimate": {"q": "tokens", "k": "tokens"},
               "keep": "p > 0.1"})json");
  EXPECT_EQ(plan(keys, "sm_90a").diagnostics,
            "error /predictor/tile/k: predictor.tile.k: expected up to 128 keys of the estimate on "
            "sm_90a, a power of two or a multiple of 16, got 256\n"
            "note: they are multiplied in one go, in steps of 16\n"
            "help: nearest legal value: 128\n");
  const SpecDocument cells = read_document(
      R"json("predictor": {"tile": {"q": 96, "k": 96}, "keep": "p > 0.1",
               "estimate": {"q": "antidiagonal(32)", "k": "antidiagonal(32)"}})json");
  EXPECT_EQ(plan(cells, "sm_90a").diagnostics,
            "error /predictor/tile/k: predictor.tile.k: expected up to 128 cells of the estimate "
            "on sm_90a, a power of two or a multiple of 16, got 3\n"
            "note: they are multiplied in one go, in steps of 16\n"
            "help: nearest legal value: 64\n");
  EXPECT_EQ(plan(keys, "cpu").diagnostics + plan(cells, "cpu").diagnostics, "");
}

TEST(PredictorPlan, PreparedTilesDivideABlocksTokens) {
  const std::string keep = R"("keep": "k0 < 128 or p > 0.1")";
  const std::string tile = R"("predictor": {"tile": {"q": 96, "k": 48}, )";
  const std::string means = R"("estimate": {"q": "mean", "k": "mean"}, )";
  const SpecDocument summaries = read_document(tile + means + keep + "}");
  EXPECT_EQ(
      plan(summaries, "sm_89").diagnostics,
      "error /predictor/tile/q: predictor.tile.q: expected a divisor of 256 on sm_89, got 96\n"
      "note: summaries, similarities and integers of a tile are made by one block, which "
      "takes up to 256 tokens\n"
      "help: nearest legal values: 64, 128\n"
      "error /predictor/tile/k: predictor.tile.k: expected a divisor of 256 on sm_89, got 48\n"
      "note: summaries, similarities and integers of a tile are made by one block, which "
      "takes up to 256 tokens\n"
      "help: nearest legal values: 32, 64\n");
  EXPECT_EQ(plan(summaries, "cpu").diagnostics, "");
  const PlannedPredictor pattern = plan(read_document(tile + R"("keep": "k0 < 128"})"), "sm_89");
  EXPECT_EQ(pattern.diagnostics.find("error"), std::string::npos) << "nothing is prepared";
}

TEST(PredictorPlan, WideHeadsHave16Bits) {
  EXPECT_EQ(plan(read_document(kIntegers), "sm_90a", 256).diagnostics,
            "error /quantise: quantise: expected a head_dim of 128 or less with 8 bits on sm_90a, "
            "got 256\n"
            "note: with wider heads the registers of 8-bit kernels spill\n"
            "help: write 16 bits for this head_dim, or compile for the target cpu\n");
  EXPECT_EQ(plan(read_document(kIntegers), "cpu", 256).diagnostics, "");
}

std::string with_tile(const std::string& predictor_tile, const std::string& fields = "") {
  return R"("predictor": {"tile": )" + predictor_tile + R"(, "keep": "k0 < 128"})" + fields;
}

TEST(PredictorTiles, AreTheLargestThatDividePredictorTile) {
  struct Case {
    const char* predictor;
    const char* target;
    int head_dim, tile_q, tile_k;
  };
  for (const Case c : {Case{R"({"q": 128, "k": 64})", "sm_90a", 128, 128, 64},
                       Case{R"({"q": 64, "k": 32})", "sm_90a", 128, 64, 32},
                       Case{R"({"q": 128, "k": 128})", "sm_90a", 128, 128, 128},
                       Case{R"({"q": 128, "k": 128})", "sm_100a", 128, 128, 64},
                       Case{R"({"q": 256, "k": 64})", "sm_89", 128, 128, 64},
                       Case{R"({"q": 64, "k": 48})", "sm_80", 128, 64, 48},
                       Case{R"({"q": 128, "k": 64})", "sm_89", 256, 128, 16},
                       Case{R"({"q": 256, "k": 256})", "cpu", 128, 256, 256}}) {
    const PlannedPredictor p = plan(read_document(with_tile(c.predictor)), c.target, c.head_dim);
    EXPECT_EQ(p.plan.attend.tile_q.value, c.tile_q) << c.predictor << c.target;
    EXPECT_EQ(p.plan.attend.tile_k.value, c.tile_k) << c.predictor << c.target;
    const int keep_q = p.plan.attend.keep_q.value;
    EXPECT_EQ(p.plan.attend.tile_q.reason, keep_q == c.tile_q
                                               ? "that of predictor.tile.q"
                                               : "the largest divisor of predictor.tile.q = " +
                                                     std::to_string(keep_q) + " that fits");
    EXPECT_EQ(find_op<Compact>(p.plan.program)->tile_k, c.tile_k);
  }
}

TEST(PredictorTiles, OfAListThatDoNotDivideArePassedOver) {
  const SpecDocument document = read_document(
      with_tile(R"({"q": 64, "k": 64})", R"(, "tile": {"q": [128, 64], "k": [48, 32]})"));
  const PlannedPredictor p = plan(document, "sm_90a");
  EXPECT_EQ(p.diagnostics.find("error"), std::string::npos) << p.diagnostics;
  EXPECT_EQ(p.plan.attend.tile_q.value, 64);
  EXPECT_EQ(p.plan.attend.tile_k.value, 32);
}

TEST(PredictorTiles, ThatDoNotDivideAreRefusedOnEveryTarget) {
  SpecDocument document = read_document(with_tile(R"({"q": 128, "k": 64})"));
  document.spec.tile.q.values = {96};
  for (const char* name : {"sm_90a", "cpu"}) {
    EXPECT_EQ(plan(document, name).diagnostics,
              "error : tile.q = 96: predictor.tile.q = 128 is not a whole number of such tiles\n"
              "note: a tile that the predictor keeps is visited in whole tiles of attend\n"
              "help: nearest legal values: tile.q = 64 or 128\n");
  }
}

TEST(PredictorTiles, OfGatheredRowsAreThoseOfThePredictor) {
  SpecDocument document = read_document(with_tile(R"({"q": 64, "k": 8})"));
  const PlannedPredictor p = plan(document, "sm_89");
  EXPECT_EQ(p.plan.attend.tile_q.value, 64);
  EXPECT_EQ(p.plan.attend.tile_k.value, 64);
  EXPECT_EQ(p.plan.attend.loader.value, Loader::kGather);
  EXPECT_EQ(p.plan.attend.loader.reason, "columns of 8 keys");
  const SpecDocument wide = read_document(with_tile(R"({"q": 128, "k": 1})"));
  EXPECT_EQ(plan(wide, "sm_89", 256).plan.attend.tile_k.value, 16);
  document.spec.tile.q.values = {32};
  EXPECT_EQ(plan(document, "sm_89").diagnostics,
            "error : loader: gather does not go with the spec\n"
            "note: a gathered work tile has the queries of predictor.tile.q\n");
}

TEST(PredictorTiles, AreThePredictorsWhereKeepReadsAParameterByTile) {
  SpecDocument document = read_document(
      R"("params": {"width": {"type": "i32", "shape": "[heads, q_tiles]", "default": 512}},
         "predictor": {"tile": {"q": 128, "k": 64}, "keep": "q0 - k1 < width"})");
  EXPECT_EQ(plan(document, "sm_89").plan.attend.tile_q.value, 128);
  document.spec.tile.q.values = {64};
  EXPECT_EQ(plan(document, "sm_89").diagnostics,
            "error : tile.q: expected 128, as predictor.tile.q, got 64\n"
            "note: the predictor reads width, which has one value for each tile of attend\n"
            "help: nearest legal values: tile.q = 128\n");
}

TEST(IntegerTiles, HoldWholeGroupsAndWholeSteps) {
  SpecDocument document = read_document(R"("quantise": {"qk": {"bits": 8, "group": "thread"}})");
  document.spec.tile.k.values = {48};
  EXPECT_EQ(plan(document, "cpu").diagnostics,
            "error : tile.k: expected a multiple of 32 with 8-bit keys, got 48\n"
            "note: groups of a thread are taken from 32 keys at a time\n"
            "help: nearest legal values: tile.k = 32 or 64\n");
  document.spec.quantise.qk_group = QuantGroup::kWarp;
  EXPECT_EQ(plan(document, "cpu").diagnostics, "");
  EXPECT_EQ(plan(document, "sm_89").diagnostics,
            "error : tile.k: expected a divisor of 256 with 8-bit queries and keys, got 48\n"
            "note: integers of a tile are made by one block, which takes up to 256 tokens\n"
            "help: nearest legal values: tile.k = 32 or 64\n");
  document.spec.quantise.v_bits = 8;
  EXPECT_EQ(plan(document, "cpu").diagnostics,
            "error : tile.k: expected a multiple of 32 with 8-bit values, got 48\n"
            "note: an mma of 8-bit values adds up 32 keys\n"
            "help: nearest legal values: tile.k = 32 or 64\n");
}

TEST(IntegerTiles, AvoidSpillsWhereE4m3IsConverted) {
  SpecDocument document = read_document(kIntegers);
  EXPECT_EQ(plan(document, "sm_89").plan.attend.tile_k.value, 64);
  const PlannedPredictor b200 = plan(document, "sm_100a");
  EXPECT_EQ(b200.plan.attend.tile_k.value, 32);
  EXPECT_EQ(b200.diagnostics, "");
  EXPECT_EQ(plan(document, "sm_100a", 64).plan.attend.tile_k.value, 64);
  document.spec.tile.k.values = {64};
  EXPECT_EQ(plan(document, "sm_100a").diagnostics,
            "perf : sm_100a converts e4m3 values for its mma, which spills registers with tile.k = "
            "64 at head_dim 128\n"
            "help: tile.k = 32\n");
}

TEST(PredictorPlan, ADecisionThatKeepsEverythingIsNone) {
  const PlannedPredictor p =
      plan(read_document(R"("predictor": {"tile": {"k": 8}, "keep": "true"}, "loader": "gather")"),
           "sm_89");
  EXPECT_EQ(find_op<Select>(p.plan.program), nullptr);
  EXPECT_EQ(p.plan.attend.loader.value, Loader::kCpAsync);
  EXPECT_EQ(p.plan.attend.loader.reason, "every visible key is kept: there is nothing to gather");
  EXPECT_EQ(p.plan.attend.tile_k.value, 64);
}

}  // namespace
}  // namespace lacuna
