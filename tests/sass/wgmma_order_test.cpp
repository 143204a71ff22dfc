// The check of the order that the wgmma family relies on finds each way to break it. The loops here
// are small: four scores of a thread, two wgmmas of each product.
#include "tests/sass/loop_lines.hpp"

namespace lacuna::sass {
namespace {

constexpr StepFacts kOrderFacts{.scores = 4, .groups = 1, .key_products = 2, .value_products = 2};

const Lines kOrderLoop = {
    ".L_loop:",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R3",
    "BAR.SYNC.DEFER_BLOCKING R0, 0x100",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x8x16.F32.BF16 R8, R32, gdesc[UR20], RZ, !UPT",
    "UMOV UR20, UR4",
    "HGMMA.64x8x16.F32.BF16 R8, R36, gdesc[UR20], R8, gsb0",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R3",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x16x16.F32.BF16 R16, R40, gdesc[UR20].tnspB, R16",
    "HGMMA.64x16x16.F32.BF16 R16, R44, gdesc[UR20].tnspB, R16, gsb0",
    "BAR.ARV R4, 0x100",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR5], RZ",
    "@!P1 BRA `(.L_bold)",
    "FMNMX R5, R8, R9, !PT",
    "FMUL R5, R5, R6",
    ".L_bold:",
    "FFMA R8, R8, R5, R12",
    "FFMA R9, R9, R5, R12",
    "FFMA R10, R10, R5, R12",
    "FFMA R11, R11, R5, R12",
    "MUFU.EX2 R8, R8",
    "MUFU.EX2 R9, R9",
    "MUFU.EX2 R10, R10",
    "MUFU.EX2 R11, R11",
    "FADD R7, R8, R9",
    "WARPGROUP.DEPBAR.LE gsb0, 0x0",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R9+URZ], RZ",
    "F2FP.BF16.F32.PACK_AB R40, R9, R8",
    "F2FP.BF16.F32.PACK_AB R41, R11, R10",
    "@P2 BRA `(.L_loop)",
    "EXIT",
};

/// A gate leaves out the product with V of the step before, and this step's exponentials, once all
/// have voted.
const Lines kGatedLoop = {
    ".L_loop:",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R3",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x8x16.F32.BF16 R8, R32, gdesc[UR20], RZ, !UPT",
    "HGMMA.64x8x16.F32.BF16 R8, R36, gdesc[UR20], R8, gsb0",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R3",
    "@!P3 BRA `(.L_without)",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x16x16.F32.BF16 R16, R40, gdesc[UR20].tnspB, R16",
    "HGMMA.64x16x16.F32.BF16 R16, R44, gdesc[UR20].tnspB, R16, gsb0",
    "BRA `(.L_issued)",
    ".L_without:",
    "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0",
    ".L_issued:",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR5], RZ",
    "FMNMX R5, R8, R9, !PT",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R10+URZ], RZ",
    "@!P1 BRA `(.L_gated)",
    "MUFU.EX2 R8, R8",
    "MUFU.EX2 R9, R9",
    "MUFU.EX2 R10, R10",
    "MUFU.EX2 R11, R11",
    ".L_gated:",
    "WARPGROUP.DEPBAR.LE gsb0, 0x0",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R9+URZ], RZ",
    "@P2 BRA `(.L_loop)",
    "EXIT",
};

/// A gate that is decided behind the exponentials. A step has two parts, and a branch for each
/// choice of them that is multiplied with V. Steps with masks decide first; they wait for the votes
/// of each part.
const Lines kLateLoop = {
    ".L_loop:",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R3",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x8x16.F32.BF16 R8, R32, gdesc[UR20], RZ, !UPT",
    "HGMMA.64x8x16.F32.BF16 R8, R36, gdesc[UR20], R8, gsb0",
    "@!P4 BRA `(.L_sure)",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R3",
    "LDS R6, [UR9]",
    ".L_sure:",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R3",
    "@!P3 BRA `(.L_without)",
    "@!P5 BRA `(.L_first)",
    "@!P6 BRA `(.L_second)",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x16x16.F32.BF16 R16, R40, gdesc[UR20].tnspB, R16",
    "HGMMA.64x16x16.F32.BF16 R16, R44, gdesc[UR20].tnspB, R16, gsb0",
    "BRA `(.L_issued)",
    ".L_first:",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x16x16.F32.BF16 R16, R40, gdesc[UR20].tnspB, R16, gsb0",
    "BRA `(.L_issued)",
    ".L_second:",
    "WARPGROUP.ARRIVE",
    "HGMMA.64x16x16.F32.BF16 R16, R44, gdesc[UR20].tnspB, R16, gsb0",
    "BRA `(.L_issued)",
    ".L_without:",
    "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0",
    ".L_issued:",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR5], RZ",
    "@!P1 BRA `(.L_masked)",
    "FMNMX R5, R8, R9, !PT",
    "FMNMX R6, R10, R11, !PT",
    "FMUL R5, R5, R7",
    "FMUL R6, R6, R7",
    "FFMA R8, R8, R4, R12",
    "FFMA R9, R9, R4, R12",
    "FFMA R10, R10, R4, R12",
    "FFMA R11, R11, R4, R12",
    "MUFU.EX2 R8, R8",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R0+URZ], RZ",
    "MUFU.EX2 R9, R9",
    "MUFU.EX2 R10, R10",
    "MUFU.EX2 R11, R11",
    "BRA `(.L_weighed)",
    ".L_masked:",
    "FSEL R8, R8, -INF, !P2",
    "FSEL R9, R9, -INF, !P2",
    "FSEL R10, R10, -INF, !P2",
    "FSEL R11, R11, -INF, !P2",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R0+URZ], RZ",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R3",
    "FADD R8, R8, R12",
    "FADD R9, R9, R12",
    "MUFU.EX2 R8, R8",
    "MUFU.EX2 R9, R9",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R0+URZ], RZ",
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R3",
    "FADD R10, R10, R12",
    "FADD R11, R11, R12",
    "MUFU.EX2 R10, R10",
    "MUFU.EX2 R11, R11",
    ".L_weighed:",
    "WARPGROUP.DEPBAR.LE gsb0, 0x0",
    "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R1+URZ], RZ",
    "F2FP.BF16.F32.PACK_AB R40, R9, R8",
    "F2FP.BF16.F32.PACK_AB R44, R11, R10",
    "@P2 BRA `(.L_loop)",
    "EXIT",
};

StepFacts in_turns() {
  StepFacts facts = kOrderFacts;
  facts.ping_pong = true;
  return facts;
}
StepFacts gated() {
  StepFacts facts = kOrderFacts;
  facts.has_gate = true;
  return facts;
}

StepFacts late() {
  StepFacts facts = gated();
  facts.decides_late = true;
  facts.parts = 2;
  return facts;
}

TEST(WgmmaOrder, IsKeptByTheLoopsHere) {
  EXPECT_EQ(violations(code_of(kOrderLoop), kOrderFacts), std::vector<std::string>());
  EXPECT_EQ(violations(code_of(kOrderLoop), in_turns()), std::vector<std::string>());
  EXPECT_EQ(violations(code_of(kGatedLoop), gated()), std::vector<std::string>());
  EXPECT_EQ(violations(code_of(kLateLoop), late()), std::vector<std::string>());
}

TEST(WgmmaOrder, NeedsALoop) {
  expect_violation({"EXIT"}, kOrderFacts, "there is no loop with a product with K and one with V");
}

TEST(WgmmaOrder, ProductsWithKComeFirst) {
  // The products with V in front of the last wgmma with K, then of both.
  Lines lines =
      moved(kOrderLoop, find_line(kOrderLoop, "R8, gsb0"), find_line(kOrderLoop, "BAR.ARV"));
  expect_violation(lines, kOrderFacts, "wgmmas of a product with K: 1 instead of 2");
  lines = moved(kOrderLoop, find_line(kOrderLoop, "R32, gdesc"), find_line(kOrderLoop, "BAR.ARV"));
  lines = moved(lines, find_line(lines, "R8, gsb0"), find_line(lines, "BAR.ARV"));
  expect_violation(lines, kOrderFacts,
                   "a product with V is issued before those with K: HGMMA.64x16x16.F32.BF16 R16, "
                   "R40, gdesc[UR20].tnspB, R16");
}

TEST(WgmmaOrder, WgmmasOfOneProductAreNotSerialised) {
  const std::size_t second = find_line(kOrderLoop, "R8, gsb0");
  expect_violation(with(kOrderLoop, second, "WARPGROUP.DEPBAR.LE gsb0, 0x0"), kOrderFacts,
                   "the wgmmas of one product are kept apart: WARPGROUP.DEPBAR.LE gsb0, 0x0");
  expect_violation(with(kOrderLoop, find_line(kOrderLoop, "R44"), "WARPGROUP.ARRIVE"), kOrderFacts,
                   "the wgmmas of one product are kept apart: WARPGROUP.ARRIVE ");
  Lines committed = kOrderLoop;
  committed[find_line(kOrderLoop, "R32")] += ", gsb0";
  expect_violation(committed, kOrderFacts, "commits of products with K: 2 instead of 1");
}

TEST(WgmmaOrder, ProductsAreCommitted) {
  Lines lines = kOrderLoop;
  std::string& last = lines[find_line(lines, "R44")];
  last.resize(last.size() - std::string_view(", gsb0").size());
  expect_violation(lines, kOrderFacts, "a product is not committed: " + last);
}

TEST(WgmmaOrder, WarpsAreNotGathered) {
  const std::size_t second = find_line(kOrderLoop, "R44");
  expect_violation(with(kOrderLoop, second, "WARPSYNC.ALL"), kOrderFacts,
                   "the warp is taken for divergent: WARPSYNC.ALL ");
}

TEST(WgmmaOrder, WhatWasWrittenBeforeIsAnnounced) {
  expect_violation(
      without(kOrderLoop, find_line(kOrderLoop, "ARRIVE")), kOrderFacts,
      "no WARPGROUP.ARRIVE before a product: " + kOrderLoop[find_line(kOrderLoop, "R32, gdesc")]);
  expect_violation(
      without(kOrderLoop, find_line(kOrderLoop, "WARPGROUP.ARRIVE", 1)), kOrderFacts,
      "no WARPGROUP.ARRIVE before a product: " + kOrderLoop[find_line(kOrderLoop, "R40, gdesc")]);
}

TEST(WgmmaOrder, EachWaitIsForWhatItSays) {
  Lines lines = kOrderLoop;
  lines[find_line(kOrderLoop, "gsb0, 0x1")] = "WARPGROUP.DEPBAR.LE gsb0, 0x0";
  expect_violation(lines, kOrderFacts,
                   "expected a wait for gsb0, 0x1: WARPGROUP.DEPBAR.LE gsb0, 0x0");
  expect_violation(without(kOrderLoop, find_line(kOrderLoop, "gsb0, 0x1")), kOrderFacts,
                   "waits for products: 1 instead of 2");
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "gsb0, 0x1"), find_line(kOrderLoop, "R40, gdesc")),
      kOrderFacts, "a wait before the product with V is issued: WARPGROUP.DEPBAR.LE gsb0, 0x1");
}

TEST(WgmmaOrder, RegistersUnderWayAreLeftAlone) {
  const std::size_t wait = find_line(kOrderLoop, "gsb0, 0x1");
  expect_violation(moved(kOrderLoop, find_line(kOrderLoop, "FFMA R11"), wait), kOrderFacts,
                   "a register of a product under way is touched: FFMA R11, R11, R5, R12");
  // Weights that V is still being multiplied by; 43 belongs to the fragment that begins at 40.
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "R41, R11"), find_line(kOrderLoop, "gsb0, 0x0")),
      kOrderFacts,
      "a register of a product under way is touched: F2FP.BF16.F32.PACK_AB R41, R11, "
      "R10");
  expect_violation(with(kOrderLoop, wait + 1, "FMUL R23, R23, R5"), kOrderFacts,
                   "a register of a product under way is touched: FMUL R23, R23, R5");
}

TEST(WgmmaOrder, ExponentialsRunUnderTheProductWithV) {
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "MUFU.EX2 R11"), find_line(kOrderLoop, "F2FP")),
      kOrderFacts, "an exponential is not under the product with V: MUFU.EX2 R11, R11");
}

TEST(WgmmaOrder, AStepCostsWhatItHasTo) {
  expect_violation(without(kOrderLoop, find_line(kOrderLoop, "MUFU.EX2 R11")), kOrderFacts,
                   "exponentials on the way: 3 instead of 4");
  Lines lines = kOrderLoop;
  lines[find_line(kOrderLoop, "FFMA R8")] = "FMUL R8, R8, R5";
  lines = with(lines, find_line(lines, "FFMA R9"), "FADD R8, R8, R12");
  expect_violation(lines, kOrderFacts, "FFMA on the way: 3 instead of 4");
  expect_violation(lines, kOrderFacts, "FMUL on the way: 1 instead of 0");
  expect_violation(with(kOrderLoop, find_line(kOrderLoop, "FFMA R8"), "FMNMX R5, R8, R9, !PT"),
                   kOrderFacts, "FMNMX on the way: 1 instead of 0");
  expect_violation(without(kOrderLoop, find_line(kOrderLoop, "F2FP")), kOrderFacts,
                   "packs on the way: 1 instead of 2");
}

TEST(WgmmaOrder, SlotsAreReleasedWhenTheirProductIsComplete) {
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "SYNCS.ARRIVE"), find_line(kOrderLoop, "gsb0, 0x1")),
      kOrderFacts,
      "K is not released between the wait for its product and that for V's: @!P0 "
      "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR5], RZ");
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "SYNCS.ARRIVE", 1),
            find_line(kOrderLoop, "gsb0, 0x0")),
      kOrderFacts,
      "V is released before its product is complete: @!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, "
      "[R9+URZ], RZ");
  expect_violation(without(kOrderLoop, find_line(kOrderLoop, "SYNCS.ARRIVE", 1)), kOrderFacts,
                   "arrivals: 1 instead of 2");
  expect_violation(without(kGatedLoop, find_line(kGatedLoop, "[R10+URZ]")), gated(),
                   "arrivals: 2 instead of 3");
}

TEST(WgmmaOrder, ProductsWaitForWhatTheyRead) {
  expect_violation(without(kOrderLoop, find_line(kOrderLoop, "PHASECHK")), kOrderFacts,
                   "no wait for K before its product");
  expect_violation(without(kOrderLoop, find_line(kOrderLoop, "PHASECHK", 1)), kOrderFacts,
                   "no wait for V before its product");
}

TEST(WgmmaOrder, TurnsAreTaken) {
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "BAR.SYNC"), find_line(kOrderLoop, "R8, gsb0")),
      in_turns(), "products are issued before the warpgroup's turn");
  expect_violation(
      moved(kOrderLoop, find_line(kOrderLoop, "BAR.ARV"), find_line(kOrderLoop, "MUFU.EX2 R9")),
      in_turns(), "the turn is not passed on between the products and the wait for them");
}

TEST(WgmmaOrder, NothingSpills) {
  expect_violation(with(kOrderLoop, kOrderLoop.size(), "STL [R1], R4"), kOrderFacts,
                   "local memory is used: STL [R1], R4");
  expect_violation(with(kOrderLoop, 1, "LDL R4, [R1]"), kOrderFacts,
                   "local memory is used: LDL R4, [R1]");
}

TEST(WgmmaOrder, AGateLeavesOutWhatItSays) {
  expect_violation(without(kGatedLoop, find_line(kGatedLoop, "BRA `(.L_gated)")), gated(),
                   "exponentials on the way: 4 instead of 0");
  expect_violation(without(kGatedLoop, find_line(kGatedLoop, "BRA `(.L_without)")), gated(),
                   "wgmmas with V on the way: 2 instead of 0");
}

TEST(WgmmaOrder, AGatedProductIsCommittedOnce) {
  Lines lines = kGatedLoop;
  lines[find_line(lines, "R40, gdesc")] += ", gsb0";
  expect_violation(lines, gated(), "commits of products with V: 2 instead of 1");
}

TEST(WgmmaOrder, ALateDecisionKeepsNothingWaiting) {
  // The wait for O among the exponentials, and a wait for votes in front of them.
  expect_violation(
      moved(kLateLoop, find_line(kLateLoop, "gsb0, 0x0"), find_line(kLateLoop, "MUFU.EX2 R10")),
      late(), "an exponential is not under the product with V: MUFU.EX2 R10, R10");
  expect_violation(with(kLateLoop, find_line(kLateLoop, "FFMA R8"),
                        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R3"),
                   late(), "waits for barriers on the way, of K and of V alone: 3 instead of 2");
  expect_violation(without(kLateLoop, find_line(kLateLoop, "BRA `(.L_sure)")), late(),
                   "waits for barriers on the way, of K and of V alone: 3 instead of 2");
}

TEST(WgmmaOrder, ALateDecisionHasAllChoicesAndVotes) {
  expect_violation(without(kLateLoop, find_line(kLateLoop, "BRA `(.L_without)")), late(),
                   "wgmmas with V on the way: 1 instead of 0");
  expect_violation(without(kLateLoop, find_line(kLateLoop, "R44, gdesc", 1)), late(),
                   "commits of products with V: 2 instead of 3");
  expect_violation(without(kLateLoop, find_line(kLateLoop, "[R0+URZ]")), late(),
                   "arrivals: 4 instead of 5");
  expect_violation(moved(kLateLoop, find_line(kLateLoop, "[R0+URZ]"), find_line(kLateLoop, "F2FP")),
                   late(),
                   "K is not released between the wait for its product and that for V's: @!P0 "
                   "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR5], RZ");
}

}  // namespace
}  // namespace lacuna::sass
