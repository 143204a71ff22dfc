// The check of the order that consumers which look ahead rely on finds each way to break it. Steps
// here have 16 scores of a thread in two parts, and one wgmma with V for each part.
#include "tests/sass/tile_gate_order.hpp"

#include "tests/sass/loop_lines.hpp"

namespace lacuna::sass {
namespace {

constexpr StepFacts kFacts{.scores = 16,
                           .groups = 1,
                           .key_products = 4,
                           .value_products = 1,
                           .has_gate = true,
                           .looks_ahead = true,
                           .ping_pong = true};

std::string numbered(int number) { return "R" + std::to_string(number); }

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

/// Eight exponentials and their packs into four registers.
void append_weights(Lines& lines, int scores, int weights) {
  for (int n = 0; n < 8; ++n)
    lines.push_back("MUFU.EX2 " + numbered(scores + n) + ", " + numbered(scores + n));
  for (int n = 0; n < 4; ++n) {
    lines.push_back("F2FP.BF16.F32.PACK_AB " + numbered(weights + n) + ", " +
                    numbered(scores + 2 * n + 1) + ", " + numbered(scores + 2 * n));
  }
}

/// One lane's vote is behind a branch or a guard.
void append_votes(Lines& lines, int scores, const std::string& name) {
  for (int n = 0; n < 16; n += 2) {
    lines.push_back("VIMNMX3 R5, R5, " + numbered(scores + n) + ", " + numbered(scores + n + 1) +
                    ", !PT");
  }
  append(lines, {"@P3 BRA `(.L_other_lanes_" + name + ")",
                 "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR9], RZ", ".L_other_lanes_" + name + ":"});
}

const std::string kReleaseKeys = "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR7], RZ";
const std::string kReleaseValues = "@!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR10], RZ";
const std::string kAwaitValues = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R3";
const std::string kWaitForAll = "WARPGROUP.DEPBAR.LE gsb0, 0x0";

/// Both parts of a step count, or one of them: R64 to R67 are the weights of the last.
void append_weighed_step(Lines& lines, const std::string& name, int now, int next) {
  lines.push_back("@P2 BRA `(.L_both_" + name + ")");
  append_weights(lines, now, 64);
  append(lines,
         {kWaitForAll, kReleaseKeys, "BRA `(.L_weighed_" + name + ")", ".L_both_" + name + ":"});
  append_weights(lines, now, 68);
  append(lines, {kWaitForAll, kReleaseKeys, kAwaitValues, "WARPGROUP.ARRIVE",
                 "HGMMA.64x16x16.F32.BF16 R56, R68, gdesc[UR20].tnspB, R56, gsb0"});
  append_weights(lines, now + 8, 64);
  append(lines, {kWaitForAll, ".L_weighed_" + name + ":", kAwaitValues, "WARPGROUP.ARRIVE",
                 "HGMMA.64x16x16.F32.BF16 R56, R64, gdesc[UR20].tnspB, R56, gsb0"});
  append_votes(lines, next, name + "_weighed");
  append(lines, {kWaitForAll, kReleaseValues, "BRA `(.L_joined_" + name + ")"});
}

/// Scores at `now`, those of the next step at `next`.
void append_turn(Lines& lines, const std::string& name, int now, int next) {
  const std::string scores = numbered(next);
  append(lines,
         {"SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R3", "BAR.SYNC.DEFER_BLOCKING R2, 0x100",
          "WARPGROUP.ARRIVE", "HGMMA.64x32x16.F32.BF16 " + scores + ", gdesc[UR20], RZ, !UPT, gsb0",
          "HGMMA.64x32x16.F32.BF16 " + scores + ", gdesc[UR21], " + scores,
          "HGMMA.64x32x16.F32.BF16 " + scores + ", gdesc[UR22], " + scores,
          "HGMMA.64x32x16.F32.BF16 " + scores + ", gdesc[UR23], " + scores + ", gsb0",
          "WARPGROUP.DEPBAR.LE gsb0, 0x1", "BAR.ARV R3, 0x100",
          "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R3", "@!P1 BRA `(.L_gated_" + name + ")"});
  append_weighed_step(lines, name, now, next);
  append(lines, {".L_gated_" + name + ":", kWaitForAll, kReleaseKeys});
  append_votes(lines, next, name + "_gated");
  lines.push_back(".L_joined_" + name + ":");
}

Lines make_loop() {
  Lines lines = {".L_loop:"};
  append_turn(lines, "a", 24, 40);
  append_turn(lines, "b", 40, 24);
  append(lines, {"@P4 BRA `(.L_loop)", "EXIT"});
  return lines;
}

const Lines kLoop = make_loop();

/// The n-th line with `part` behind the label ".L_`label`:".
std::size_t line_behind(const std::string& label, const std::string& part, int n = 0) {
  const std::size_t from = find_line(kLoop, ".L_" + label + ":");
  const Lines rest(kLoop.begin() + static_cast<std::ptrdiff_t>(from), kLoop.end());
  return from + find_line(rest, part, n);
}

Lines replaced(Lines lines, std::size_t line, const std::string& text) {
  lines[line] = text;
  return lines;
}

TEST(TileGateOrder, OrderIsKeptByTheLoopHere) {
  EXPECT_EQ(violations(code_of(kLoop), kFacts), std::vector<std::string>());
}

TEST(TileGateOrder, NeedsALoop) {
  expect_violation({"EXIT"}, kFacts, "there is no loop with a product with K and one with V");
}

TEST(TileGateOrder, NothingSpills) {
  expect_violation(with(kLoop, 1, "LDL R4, [R1]"), kFacts, "local memory is used: LDL R4, [R1]");
}

TEST(TileGateOrder, ProductsAreWhatTheyHaveToBe) {
  expect_violation(without(kLoop, find_line(kLoop, "gdesc[UR21]")), kFacts,
                   "wgmmas of a product with K: 3 instead of 4");
  const std::size_t first = find_line(kLoop, "gdesc[UR20]"), last = find_line(kLoop, "gdesc[UR23]");
  expect_violation(replaced(kLoop, last, "HGMMA.64x32x16.F32.BF16 R40, gdesc[UR23], R40"), kFacts,
                   "a product is not committed: HGMMA.64x32x16.F32.BF16 R40, gdesc[UR23], R40");
  expect_violation(replaced(kLoop, first, "HGMMA.64x32x16.F32.BF16 R40, gdesc[UR20], RZ, !UPT"),
                   kFacts, "commits of a product with K: 1 instead of 2");
  expect_violation(
      replaced(kLoop, first, "HGMMA.64x16x16.F32.BF16 R40, gdesc[UR20], RZ, !UPT, gsb0"), kFacts,
      "keys of a product: 16 instead of 32");
  const std::string kept = "HGMMA.64x32x16.F32.BF16 R40, R80, gdesc[UR20], RZ, !UPT, gsb0";
  expect_violation(replaced(kLoop, first, kept), kFacts,
                   "queries are read from registers: " + kept);
  const std::size_t values = find_line(kLoop, "R68, gdesc");
  expect_violation(with(kLoop, values, "HGMMA.64x16x16.F32.BF16 R56, R68, gdesc[UR20].tnspB, R56"),
                   kFacts, "wgmmas of a product with V: 2 instead of 1");
}

TEST(TileGateOrder, WgmmasOfOneProductAreNotSerialised) {
  const std::size_t second = find_line(kLoop, "gdesc[UR21]");
  expect_violation(with(kLoop, second, "WARPGROUP.ARRIVE"), kFacts,
                   "the wgmmas of one product are kept apart: WARPGROUP.ARRIVE ");
  expect_violation(moved(kLoop, find_line(kLoop, "BAR.SYNC"), second), kFacts,
                   "the wgmmas of one product are kept apart: BAR.SYNC.DEFER_BLOCKING R2, 0x100");
}

TEST(TileGateOrder, WhatWasWrittenBeforeIsAnnounced) {
  expect_violation(
      without(kLoop, find_line(kLoop, "WARPGROUP.ARRIVE")), kFacts,
      "no WARPGROUP.ARRIVE before a product: " + kLoop[find_line(kLoop, "gdesc[UR20]")]);
  const std::size_t both = line_behind("both_a", "WARPGROUP.ARRIVE");
  expect_violation(moved(kLoop, both, line_behind("both_a", "F2FP", 3)), kFacts,
                   "no WARPGROUP.ARRIVE before a product: " + kLoop[both + 1]);
}

TEST(TileGateOrder, OneProductIsUnderWayAtATime) {
  const std::string complaint = "a product is issued before the one before it is complete: ";
  // Scores and the last product; the two with V; with V and the next step's scores.
  expect_violation(without(kLoop, line_behind("loop", kWaitForAll)), kFacts,
                   complaint + kLoop[line_behind("weighed_a", "HGMMA")]);
  expect_violation(without(kLoop, line_behind("both_a", kWaitForAll, 1)), kFacts,
                   complaint + kLoop[line_behind("weighed_a", "HGMMA")]);
  expect_violation(without(kLoop, line_behind("weighed_a", kWaitForAll)), kFacts,
                   complaint + kLoop[line_behind("joined_a", "HGMMA")]);
}

TEST(TileGateOrder, NoProductIsOfNothing) {
  const std::string empty = "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0";
  expect_violation(with(kLoop, line_behind("gated_a", kWaitForAll), empty), kFacts,
                   "a product of nothing: " + empty);
}

TEST(TileGateOrder, RegistersUnderWayAreLeftAlone) {
  const std::string complaint = "a register of a product under way is touched: ";
  const auto expect_touched = [&](std::size_t before, const std::string& text) {
    expect_violation(with(kLoop, before, text), kFacts, complaint + text);
  };
  // Scores: among their own wgmmas, and where the branches part; 55 is the last that begins at 40.
  expect_touched(find_line(kLoop, "gdesc[UR22]"), "FMUL R55, R55, R2");
  expect_touched(line_behind("gated_a", kWaitForAll), "FMUL R41, R41, R2");
  // Output and weights.
  expect_touched(line_behind("weighed_a", kWaitForAll), "FMUL R57, R57, R2");
  expect_touched(line_behind("weighed_a", kWaitForAll), "MOV R66, R2");
}

TEST(TileGateOrder, TurnsAreTaken) {
  const std::size_t sync = find_line(kLoop, "BAR.SYNC");
  const std::size_t second = line_behind("joined_a", "BAR.SYNC");
  const std::string complaint = "a product with K is issued before the warpgroup's turn: ";
  expect_violation(without(kLoop, sync), kFacts,
                   complaint + kLoop[find_line(kLoop, "gdesc[UR20]")]);
  expect_violation(without(kLoop, sync), kFacts, "turns on the way: 1 instead of 2");
  expect_violation(replaced(kLoop, second, "BAR.SYNC.DEFER_BLOCKING R2, 0x80"), kFacts,
                   complaint + kLoop[line_behind("joined_a", "HGMMA")]);
}

TEST(TileGateOrder, TurnsArePassedOn) {
  const std::size_t pass = find_line(kLoop, "BAR.ARV");
  const std::string late = "the turn is not passed on before the product is waited for: ";
  expect_violation(without(kLoop, pass), kFacts, late + kWaitForAll);
  expect_violation(moved(kLoop, pass, line_behind("gated_a", kReleaseKeys)), kFacts,
                   late + kWaitForAll);
  const std::string early = "the turn is passed on before some of the product is complete: ";
  expect_violation(without(kLoop, pass - 1), kFacts, early + kLoop[pass]);
  expect_violation(moved(kLoop, pass, pass - 1), kFacts, early + kLoop[pass]);
}

TEST(TileGateOrder, DecisionsAreWaitedFor) {
  const std::size_t decided = find_line(kLoop, "[UR6]");
  const std::string complaint = "scores are waited for before tiles are decided about: ";
  expect_violation(without(kLoop, decided), kFacts, complaint + kWaitForAll);
  expect_violation(moved(kLoop, decided, find_line(kLoop, "BAR.ARV")), kFacts,
                   complaint + kWaitForAll);
  expect_violation(without(kLoop, decided), kFacts,
                   "waits for barriers on the gated way: 3 instead of 4");
}

TEST(TileGateOrder, ProductsWaitForWhatTheyRead) {
  expect_violation(without(kLoop, find_line(kLoop, "[UR5]")), kFacts,
                   "no wait for K before its product: " + kLoop[find_line(kLoop, "gdesc[UR20]")]);
  expect_violation(
      without(kLoop, line_behind("both_a", kAwaitValues)), kFacts,
      "no wait for V before its product: " + kLoop[line_behind("both_a", "R68, gdesc")]);
  expect_violation(without(kLoop, line_behind("weighed_b", kAwaitValues)), kFacts,
                   "no wait for V before its product: " + kLoop[line_behind("weighed_b", "HGMMA")]);
}

TEST(TileGateOrder, SlotsAreReleasedWhenTheirProductIsComplete) {
  const std::string complaint = "an arrival before scores are complete: ";
  expect_violation(
      moved(kLoop, line_behind("gated_a", kReleaseKeys), line_behind("gated_a", kWaitForAll)),
      kFacts, complaint + kReleaseKeys);
  expect_violation(
      moved(kLoop, line_behind("both_b", kReleaseKeys), line_behind("both_b", kWaitForAll)), kFacts,
      complaint + kReleaseKeys);
  expect_violation(without(kLoop, line_behind("gated_a", kReleaseKeys)), kFacts,
                   "arrivals on the gated way: 3 instead of 4");
  expect_violation(without(kLoop, line_behind("weighed_a", kReleaseValues)), kFacts,
                   "arrivals on a way with weights: 4 instead of 5");
  expect_violation(
      moved(kLoop, line_behind("weighed_a", kReleaseValues), line_behind("weighed_a", kWaitForAll)),
      kFacts, "V is not released when its product is complete: " + kWaitForAll);
}

TEST(TileGateOrder, WeightsArePacked) {
  expect_violation(without(kLoop, find_line(kLoop, "F2FP")), kFacts,
                   "weights are not packed: " + kLoop[line_behind("weighed_a", "HGMMA")]);
  expect_violation(with(kLoop, find_line(kLoop, "F2FP"), "F2FP.BF16.F32.PACK_AB R4, R5, R6"),
                   kFacts, "packs on a way with weights: 5 instead of 4");
}

TEST(TileGateOrder, ExponentialsRunUnderTheProductOfTheOtherPart) {
  const std::string exponential = "MUFU.EX2 R4, R4";
  expect_violation(with(kLoop, line_behind("weighed_a", kWaitForAll), exponential), kFacts,
                   "an exponential is under the last product with V: " + exponential);
  expect_violation(with(kLoop, find_line(kLoop, "MUFU"), exponential), kFacts,
                   "exponentials on a way with weights: 9 instead of 8");
}

TEST(TileGateOrder, AGatedStepCostsWhatItHasTo) {
  const std::size_t gated = line_behind("gated_a", "VIMNMX3");
  expect_violation(with(kLoop, gated, "MUFU.EX2 R4, R4"), kFacts,
                   "exponentials on the gated way: 1 instead of 0");
  expect_violation(with(kLoop, gated, "FMNMX R4, R40, R41, !PT"), kFacts,
                   "FMNMX on the way: 1 instead of 0");
  expect_violation(without(kLoop, gated), kFacts, "VIMNMX3 on the way: 15 instead of 16");
  expect_violation(with(kLoop, gated, "IMAD.MOV.U32 R80, RZ, RZ, R40"), kFacts,
                   "scores are copied: IMAD.MOV.U32 R80, RZ, RZ, R40");
  expect_violation(with(kLoop, gated, "MOV R80, R55"), kFacts, "scores are copied: MOV R80, R55");
  expect_violation(without(kLoop, find_line(kLoop, "BRA `(.L_gated_a)")), kFacts,
                   "wgmmas with V on the gated way: 1 instead of 0");
}

}  // namespace
}  // namespace lacuna::sass
