// The family of attend: wgmma wherever it can be, with the reason where it cannot.
#include "compiler/emit/emit.hpp"
#include "tests/passes/planned_wgmma.hpp"

namespace lacuna {
namespace {

TEST(Wgmma, IsTheFamilyOfSm90a) {
  const PlannedWgmma p = planned(make_document());
  EXPECT_EQ(p.diagnostics, "");
  EXPECT_EQ(family_of(p), "wgmma: the tensor cores of sm_90a by TMA");
  EXPECT_EQ(tiles_of(p), "128x128x2");
  EXPECT_EQ(p.attend().tile_k.origin, Origin::kDefault);
  EXPECT_EQ(p.attend().tile_k.reason,
            "64 queries for each of 2 warpgroups, and keys whose scores fit their registers");
  EXPECT_EQ(p.attend().warps.value, 8);
  EXPECT_EQ(p.attend().warpgroups.value, 2);
  EXPECT_EQ(p.attend().step_keys.value, 128);
  EXPECT_EQ(p.attend().query_buffers.value, 2);
  EXPECT_EQ(p.attend().loader.value, Loader::kTma);
  EXPECT_EQ(p.attend().smem_bytes.value, 1024 + (2 * 128 + 2 * 2 * 128) * 128 * 2);
  EXPECT_EQ(p.attend().registers.value, 240);
  EXPECT_EQ(p.attend().blocks_per_sm.value, 1);
}

TEST(Wgmma, OtherTargetsHaveMma) {
  for (const Target& t : all_targets()) {
    if (t.has_wgmma) continue;
    EXPECT_EQ(family_of(planned(make_document(), {}, t.name.c_str())),
              "mma: " + t.name + " has no wgmma");
  }
}

TEST(Wgmma, KeysAndValuesOfE4m3AreConverted) {
  const PlannedWgmma p = planned(make_document(), {.kv = KvFormat::kE4M3});
  EXPECT_EQ(p.diagnostics, "");
  EXPECT_EQ(family_of(p), "wgmma: the tensor cores of sm_90a by TMA");
  EXPECT_EQ(tiles_of(p), "128x128x2");
  EXPECT_EQ(p.attend().producer.value, Producer::kWgmmaConverting);
  EXPECT_EQ(p.attend().consumer.value, Consumer::kWgmmaChained);
  EXPECT_EQ(p.attend().registers.value, 232);
  EXPECT_EQ(p.attend().query_buffers.value, 2);
  EXPECT_EQ(p.attend().code_places.value, 2);
  EXPECT_EQ(p.attend().smem_bytes.value, 2048 + (2 * 128 + 2 * 2 * 128) * 128 * 2 + 2 * 128 * 128);
  const PlannedWgmma pages =
      planned(make_document(), {.batch = BatchLayout::kPages, .kv = KvFormat::kE4M3});
  EXPECT_EQ(pages.attend().query_buffers.value, 1);
  EXPECT_EQ(pages.attend().code_places.value, 4);
  const PlannedWgmma narrow = planned(make_document(), {.head_dim = 64, .kv = KvFormat::kE4M3});
  EXPECT_EQ(tiles_of(narrow), "128x128x2");
  EXPECT_EQ(narrow.attend().code_places.value, 8);
  const PlannedWgmma wide = planned(make_document(), {.head_dim = 256, .kv = KvFormat::kE4M3});
  EXPECT_EQ(wide.attend().query_buffers.value, 1);
  EXPECT_EQ(wide.attend().code_places.value, 2);
}

TEST(Wgmma, GatesOnE4m3DoNotLookAhead) {
  const PlannedWgmma p = planned(make_document(true), {.kv = KvFormat::kE4M3});
  EXPECT_EQ(p.diagnostics, "");
  EXPECT_EQ(p.attend().producer.value, Producer::kWgmmaConverting);
  EXPECT_EQ(p.attend().consumer.value, Consumer::kWgmma);
  EXPECT_EQ(p.attend().gate_policy.value, GatePolicy::kTileVotes);
}

TEST(Wgmma, WhatCannotBeConvertedHasMma) {
  EXPECT_EQ(family_of(planned(make_document(), {.head_dim = 96, .kv = KvFormat::kE4M3})),
            "mma: k and v of e4m3: 96 elements of a row are not whole panels of 64");
  EXPECT_EQ(family_of(planned(read_document(R"("tile": {"q": 192})"),
                              {.head_dim = 64, .kv = KvFormat::kE4M3})),
            "mma: tile.q = 192: e4m3 keys and values are made 16-bit for 128 queries");
}

TEST(Wgmma, E4m3IsRefusedWhereNoTargetServesIt) {
  const auto refusal = [](const BuildOptions& options, const char* target_name) {
    return planned(make_document(), options, target_name).diagnostics;
  };
  EXPECT_NE(refusal({.kv = KvFormat::kE4M3}, "sm_80").find("there is no conversion from it"),
            std::string::npos);
  EXPECT_NE(refusal({.head_dim = 80, .kv = KvFormat::kE4M3}, "sm_90a")
                .find("k and v of e4m3: expected a head_dim that is a multiple of 32, got 80"),
            std::string::npos);
  EXPECT_EQ(refusal({.head_dim = 80, .kv = KvFormat::kE4M3}, "cpu"), "");
}

/// What is made of codes before attend is of 16 bits, or integers. Who copies tiles cannot convert,
/// and gets 16-bit rows.
TEST(Wgmma, PredictorsReadE4m3RowByRow) {
  const auto plan_of = [](const char* rest, const char* target_name = "sm_90a") {
    return planned(read_document(rest), {.kv = KvFormat::kE4M3}, target_name);
  };
  const PlannedWgmma means =
      plan_of(R"("predictor": {"estimate": {}, "keep": "rank < 4", "tile": {"q": 128, "k": 128}})");
  EXPECT_EQ(means.diagnostics, "");
  EXPECT_EQ(means.attend().producer.value, Producer::kWgmmaConverting);
  const char* const tokens = R"("predictor": {"keep": "p > 0.1", "tile": {"q": 128, "k": 64},
      "estimate": {"q": "tokens", "k": "tokens"}})";
  const PlannedWgmma wide = plan_of(tokens);
  EXPECT_EQ(wide.diagnostics, "");
  EXPECT_EQ(wide.attend().producer.value, Producer::kWgmma);
  EXPECT_EQ(plan_of(tokens, "cpu").diagnostics, "");
  const PlannedWgmma integers = plan_of(R"("quantise": {"qk": {"bits": 8}, "v": {"bits": 8}})");
  EXPECT_EQ(integers.diagnostics, "");
  EXPECT_EQ(integers.attend().consumer.value, Consumer::kWgmmaInt8);
  const PlannedWgmma keys_alone = plan_of(R"("quantise": {"qk": {"bits": 8}})");
  EXPECT_EQ(keys_alone.diagnostics, "");
  EXPECT_EQ(keys_alone.attend().consumer.value, Consumer::kWgmmaInt8);
}

TEST(Wgmma, StepsAndBuffersFollowFromTheHeadDim) {
  const PlannedWgmma narrow = planned(make_document(), {.head_dim = 64});
  EXPECT_EQ(tiles_of(narrow), "192x128x2");
  EXPECT_EQ(narrow.attend().warpgroups.value, 3);
  EXPECT_EQ(narrow.attend().smem_bytes.value, 1024 + (2 * 192 + 2 * 2 * 128) * 64 * 2);
  const PlannedWgmma wide = planned(make_document(), {.head_dim = 256});
  EXPECT_EQ(tiles_of(wide), "128x64x2");
  EXPECT_EQ(wide.attend().step_keys.value, 64);
  EXPECT_EQ(wide.attend().query_buffers.value, 1);
  EXPECT_EQ(wide.attend().query_buffers.reason, "shared memory has no room for two");
  EXPECT_EQ(wide.attend().smem_bytes.value, 1024 + (128 + 2 * 2 * 64) * 256 * 2);
}

TEST(Wgmma, RingsHaveTwoToFourStages) {
  const PlannedWgmma four = planned(read_document(R"("tile": {"stages": 4})"), {.head_dim = 64});
  EXPECT_EQ(family_of(four), "wgmma: the tensor cores of sm_90a by TMA");
  EXPECT_EQ(tiles_of(four), "192x128x4");
  const PlannedWgmma three = planned(read_document(R"("tile": {"stages": 3})"));
  EXPECT_EQ(tiles_of(three), "128x128x3");
  EXPECT_EQ(three.attend().value_stages.value, 3);
  EXPECT_EQ(three.attend().query_buffers.value, 1);
}

TEST(Wgmma, SequencesMayUseOneMorePlaceOfValuesAndFourWarpsLoad) {
  for (const BatchLayout batch : {BatchLayout::kSequences, BatchLayout::kPages}) {
    const PlannedWgmma planned_batch = planned(make_document(), {.batch = batch});
    const AttendPlan& attend = planned_batch.attend();
    EXPECT_EQ(attend.stages.value, 2);
    EXPECT_EQ(attend.value_stages.value, 3);
    EXPECT_EQ(attend.value_stages.reason,
              "one more, which launches with many rows for each key use");
    EXPECT_EQ(attend.producer.value, Producer::kWgmmaSequences);
  }
  const PlannedWgmma codes =
      planned(make_document(), {.batch = BatchLayout::kPages, .kv = KvFormat::kE4M3});
  EXPECT_EQ(codes.attend().producer.value, Producer::kWgmmaConverting);
}

TEST(Wgmma, AGateThatLooksAheadHasMoreStagesOfKeysThanOfValues) {
  const SpecDocument document = make_document(true);
  const PlannedWgmma usual = planned(document);
  EXPECT_EQ(usual.attend().stages.value, 3);
  EXPECT_EQ(usual.attend().stages.reason,
            "a gate that leaves out whole tiles wants keys early, but shared memory has no place "
            "for 4 and two query tiles");
  EXPECT_EQ(usual.attend().value_stages.value, 2);
  EXPECT_EQ(usual.attend().value_stages.reason, "only those that count are loaded");
  EXPECT_EQ(usual.attend().query_buffers.value, 2);
  EXPECT_EQ(usual.attend().smem_bytes.value, 1024 + (2 * 128 + (3 + 2) * 128) * 128 * 2);
  const PlannedWgmma narrow = planned(document, {.head_dim = 64});
  EXPECT_EQ(narrow.attend().stages.value, 4);
  EXPECT_EQ(narrow.attend().stages.reason, "a gate that leaves out whole tiles wants keys early");
  EXPECT_EQ(narrow.attend().value_stages.value, 2);
}

TEST(Wgmma, NarrowGatheredRowsHaveThreeStages) {
  const SpecDocument columns = read_document(
      R"("predictor": {"tile": {"q": 128, "k": 1}, "keep": "j % 3 == 0"}, "loader": "gather")");
  EXPECT_EQ(tiles_of(planned(columns, {.head_dim = 64})), "128x128x3");
  EXPECT_EQ(tiles_of(planned(columns, {.head_dim = 128})), "128x128x2");
}

TEST(Wgmma, ThreeWarpgroupsNeedRegistersForTheirRows) {
  const SpecDocument capped =
      read_document(R"json("attention": {"score": "20 * tanh(s / 20)"})json");
  EXPECT_EQ(tiles_of(planned(capped, {.head_dim = 64})), "128x128x2");
  const SpecDocument wide = read_document(R"("tile": {"q": 192, "k": 64})");
  EXPECT_EQ(family_of(planned(wide)),
            "mma: tile.q = 192: three warpgroups have registers for head_dim 64 alone");
  EXPECT_EQ(tiles_of(planned(wide, {.head_dim = 64})), "192x64x2");
}

TEST(Wgmma, TilesThatItCannotHaveAreThoseOfMma) {
  struct Case {
    const char* tile;
    const char* family;
    const char* tiles;
  };
  for (const Case& c :
       {Case{R"({"q": 64})", "mma: tile.q = 64: the two warpgroups of a block have 128 rows",
             "64x64x2"},
        Case{R"({"warps": 4})", "mma: tile.q = 64: the two warpgroups of a block have 128 rows",
             "64x64x2"},
        Case{R"({"k": 32})", "mma: tile.k = 32: 64 or 128 keys are multiplied at once", "128x32x2"},
        Case{R"({"stages": 4, "k": 32})", "mma: tile.k = 32: 64 or 128 keys are multiplied at once",
             "128x32x4"},
        Case{R"({"q": [64, 128], "k": [32, 64]})", "wgmma: the tensor cores of sm_90a by TMA",
             "128x64x2"}}) {
    const PlannedWgmma p = planned(read_document(std::string("\"tile\": ") + c.tile));
    EXPECT_EQ(p.diagnostics, "") << c.tile;
    EXPECT_EQ(family_of(p), c.family) << c.tile;
    EXPECT_EQ(tiles_of(p), c.tiles) << c.tile;
  }
  EXPECT_EQ(family_of(planned(read_document(R"("tile": {"q": 32, "k": 128})"), {.head_dim = 64})),
            "mma: tile.q = 32: the two warpgroups of a block have 128 rows");
}

TEST(Wgmma, ProgramsThatItCannotComputeAreThoseOfMma) {
  EXPECT_EQ(family_of(planned(make_document(), {.head_dim = 512})),
            "mma: head_dim 512: 64, 80, 96, 112, 128, 192 and 256 are laid out");
  EXPECT_EQ(family_of(planned(read_document(R"("loader": "cp_async")"))),
            "mma: loader \"cp_async\": wgmma takes what TMA has loaded");
}

TEST(Wgmma, SmallOperandsHaveMoreStages) {
  const PlannedWgmma p =
      planned(read_document(R"("quantise": {"qk": {"bits": 8}, "v": {"bits": 8}})"));
  EXPECT_EQ(p.diagnostics, "");
  EXPECT_EQ(family_of(p), "wgmma: the tensor cores of sm_90a by TMA");
  EXPECT_EQ(tiles_of(p), "128x128x4");
}

TEST(Wgmma, ColumnsAreGatheredInSteps) {
  const PlannedWgmma p =
      planned(read_document(R"("predictor": {"tile": {"q": 128, "k": 1}, "keep": "k0 < 128"})"));
  EXPECT_EQ(family_of(p), "wgmma: the tensor cores of sm_90a");
  EXPECT_EQ(p.attend().loader.value, Loader::kGather);
  EXPECT_EQ(tiles_of(p), "128x128x2");
}

TEST(Wgmma, TilesDivideThePredictors) {
  const auto with_tile = [](const std::string& tile) {
    return planned(read_document(R"("predictor": {"tile": )" + tile + R"(, "keep": "k0 < 128"})"));
  };
  EXPECT_EQ(tiles_of(with_tile(R"({"q": 128, "k": 128})")), "128x128x2");
  EXPECT_EQ(tiles_of(with_tile(R"({"q": 128, "k": 64})")), "128x64x2");
  EXPECT_EQ(tiles_of(with_tile(R"({"q": 256, "k": 256})")), "128x128x2");
  EXPECT_EQ(with_tile(R"({"q": 256, "k": 256})").attend().tile_k.reason,
            "the largest divisor of predictor.tile.k = 256 that fits");
  EXPECT_EQ(tiles_of(with_tile(R"({"q": 64, "k": 64})")), "64x64x2");
  EXPECT_EQ(tiles_of(with_tile(R"({"q": 128, "k": 32})")), "128x32x2");
}

TEST(Wgmma, ABlockTakesTwoRowsOf64QueriesThatHaveLists) {
  const auto with = [](const std::string& tile, const std::string& more = "") {
    return planned(read_document(R"("mask": "external", "tile": )" + tile + more));
  };
  const PlannedWgmma p = with(R"({"q": 64, "k": 64})");
  EXPECT_EQ(family_of(p), "wgmma: the tensor cores of sm_90a by TMA");
  EXPECT_EQ(p.attend().work_tiles.value, 2);
  EXPECT_EQ(p.attend().warpgroups.value, 2);
  EXPECT_EQ(p.attend().warps.value, 8);
  EXPECT_EQ(p.attend().step_keys.value, 128);
  EXPECT_EQ(p.attend().registers.value, 232);
  EXPECT_EQ(attend_of(p.plan.program).tile_q, 64) << "that of lists and reports";
  EXPECT_EQ(with(R"({"q": 128, "k": 64})").attend().work_tiles.value, 1);
  EXPECT_EQ(with(R"({"q": 64, "k": 32})").attend().step_keys.value, 64) << "two tiles";
  EXPECT_EQ(with(R"({"q": 64, "k": 128})").attend().step_keys.value, 128);
  EXPECT_EQ(family_of(with(R"({"q": 32, "k": 64})")),
            "mma: tile.q = 32: the two warpgroups of a block have 128 rows");
  const std::string gate = R"(, "gate": {"scope": "warp", "skip": "gap < -3", "skips": ["pv"]})";
  EXPECT_EQ(with(R"({"q": 64, "k": 64})", gate).attend().step_keys.value, 64);
  EXPECT_EQ(family_of(with(R"({"q": 64, "k": 32})", gate)),
            "mma: tile.k = 32: a gate leaves out products of 64 or 128 keys");
  const std::string bytes = R"(, "quantise": {"qk": {"bits": 8}, "v": {"bits": 8}})";
  EXPECT_EQ(family_of(with(R"({"q": 64, "k": 32})", bytes)),
            "mma: tile.k = 32: e4m3 values come in blocks of 64 keys");
}

TEST(Wgmma, AGateHasTheSameTilesInBothFamilies) {
  const SpecDocument document = make_document(true);
  const PlannedWgmma wgmma = planned(document), mma = planned(document, {}, "sm_80");
  EXPECT_EQ(wgmma.diagnostics, "");
  EXPECT_EQ(wgmma.attend().family.value, AttendFamily::kWgmma);
  EXPECT_EQ(wgmma.attend().tile_q.value, mma.attend().tile_q.value);
  EXPECT_EQ(wgmma.attend().tile_k.value, mma.attend().tile_k.value);
  EXPECT_EQ(wgmma.attend().gate_scope.value, GateScope::kTile);
}

TEST(Wgmma, AGateOfATileTakesTwoTilesAStepWhateverItKnows) {
  for (const auto& [skip, stages] :
       {std::pair<std::string, int>{"tile_max < 1", 3}, {"gap < -3", 2}}) {
    const AttendPlan chosen =
        planned(
            read_document(R"json("gate": {"scope": "tile", "skips": ["exp", "pv"], "skip": ")json" +
                          skip + "\"}"))
            .attend();
    EXPECT_EQ(chosen.step_keys.value, 128) << skip;
    EXPECT_EQ(chosen.stages.value, stages) << skip;
  }
}

TEST(Wgmma, AGateOfAWarpBecomesOneOfAWarpgroup) {
  SpecDocument document = make_document(true);
  document.spec.gate->scope = GateScope::kWarp;
  document.spec.gate->skips_v_load = false;
  Diagnostics diagnostics;
  make_plan(document, {}, target("sm_90a"), diagnostics);
  ASSERT_EQ(diagnostics.items.size(), 1u);
  EXPECT_EQ(diagnostics.items[0].code, Code::kGateScope);
  EXPECT_EQ(diagnostics.items[0].severity, Severity::kNote);
  EXPECT_EQ(
      diagnostics.items[0].message,
      "gate.scope: on sm_90a the 64 rows of a warpgroup decide together, not the 16 of a warp");
  const PlannedWgmma wgmma = planned(document);
  EXPECT_EQ(attend_of(wgmma.plan.program).gate->scope, GateScope::kWarpgroup);
  EXPECT_EQ(wgmma.attend().gate_scope.value, GateScope::kWarpgroup);
  EXPECT_EQ(wgmma.attend().gate_scope.origin, Origin::kDerived);
  EXPECT_EQ(wgmma.attend().gate_scope.reason,
            "the spec says warp, but wgmma multiplies 64 rows at once");
  EXPECT_NE(source_text(emit_cuda(wgmma.plan, document)).find("GateScope::kWarpgroup"),
            std::string::npos);
  EXPECT_EQ(attend_of(planned(document, {}, "sm_80").plan.program).gate->scope, GateScope::kWarp);
}

TEST(Wgmma, TheCallerMayAskForAFamily) {
  const PlannedWgmma mma = planned(make_document(), {.family = AttendFamily::kMma});
  EXPECT_EQ(family_of(mma), "mma: asked for by the caller");
  EXPECT_EQ(tiles_of(mma), "128x64x2");
  EXPECT_EQ(mma.attend().loader.value, Loader::kCpAsync);
  EXPECT_EQ(planned(make_document(), {.family = AttendFamily::kWgmma}).diagnostics, "");
  EXPECT_EQ(planned(make_document(), {.head_dim = 512, .family = AttendFamily::kWgmma}).diagnostics,
            "error : attend: the wgmma family was asked for, but cannot be\n"
            "note: head_dim 512: 64, 80, 96, 112, 128, 192 and 256 are laid out\n");
}

TEST(Wgmma, MeasuredTilesDecideWhoseTheyAre) {
  const auto tuned = [](int q, int k, int stages) {
    return BuildOptions{.tuned = TunedTiles{q, k, stages, {}, "record 7"}};
  };
  const PlannedWgmma wgmma = planned(make_document(), tuned(128, 64, 2));
  EXPECT_EQ(family_of(wgmma), "wgmma: measured");
  EXPECT_EQ(tiles_of(wgmma), "128x64x2");
  EXPECT_EQ(wgmma.attend().tile_k.reason, "record 7");
  const PlannedWgmma mma = planned(make_document(), tuned(64, 64, 2));
  EXPECT_EQ(family_of(mma),
            "mma: measured: tile.q = 64: the two warpgroups of a block have 128 rows");
  EXPECT_EQ(tiles_of(mma), "64x64x2");
  const PlannedWgmma neither = planned(make_document(), tuned(512, 512, 2));
  EXPECT_EQ(family_of(neither), "wgmma: the tensor cores of sm_90a by TMA");
  EXPECT_EQ(tiles_of(neither), "128x128x2");
}

TEST(Wgmma, ErrorsOfTilesThatNeitherCanHaveAreThoseOfMma) {
  SpecDocument document = make_document();
  document.spec.tile.k.values = {256};
  const PlannedWgmma p = planned(document);
  EXPECT_NE(p.diagnostics.find("error : tile 128x256 with 2 stages at head_dim 128 needs"),
            std::string::npos)
      << p.diagnostics;
}

}  // namespace
}  // namespace lacuna
