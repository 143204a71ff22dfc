// Tiles and the budget of a block: what is chosen, where it comes from, what is rejected and how.
#include "compiler/passes/target/tile_choice.hpp"
#include "tests/passes/spec_documents.hpp"

namespace lacuna {
namespace {

struct Planned {
  AttendPlan attend;
  std::string diagnostics;
};

Planned plan(const SpecDocument& document, int head_dim, const char* target_name) {
  Diagnostics diagnostics;
  Plan made = make_plan(document, {.head_dim = head_dim}, target(target_name), diagnostics);
  return {made.attend, text_of(diagnostics)};
}

TEST(Tiles, DefaultIsTheLargestShapeThatFits) {
  struct Case {
    int head_dim;
    const char* target;
    int tile_q, tile_k;
  };
  for (const Case c :
       {Case{64, "sm_80", 128, 64}, Case{128, "sm_80", 128, 64}, Case{128, "sm_89", 128, 64},
        Case{256, "sm_80", 128, 32}, Case{256, "sm_89", 64, 32}, Case{256, "sm_90a", 128, 64},
        Case{256, "sm_120a", 64, 32}, Case{256, "cpu", 128, 64}}) {
    const Planned p = plan(make_document(), c.head_dim, c.target);
    EXPECT_EQ(p.attend.tile_q.value, c.tile_q) << c.target << " d=" << c.head_dim;
    EXPECT_EQ(p.attend.tile_k.value, c.tile_k) << c.target << " d=" << c.head_dim;
    EXPECT_EQ(p.attend.tile_q.origin, Origin::kDefault);
    if (std::string(c.target) != "cpu") {
      EXPECT_EQ(p.attend.warps.value * 16, c.tile_q);
      EXPECT_EQ(p.attend.warps.origin, Origin::kDerived);
      EXPECT_LE(p.attend.smem_bytes.value, target(c.target).smem_bytes_per_block);
      EXPECT_GE(p.attend.blocks_per_sm.value, 1);
    }
  }
}

TEST(Tiles, EveryDefaultFitsEveryTarget) {
  for (const Target& t : all_targets()) {
    for (const int head_dim : {64, 96, 128, 256}) {
      for (const bool gate : {false, true}) {
        Diagnostics diagnostics;
        (void)make_plan(make_document(gate), {.head_dim = head_dim}, t, diagnostics);
        EXPECT_FALSE(diagnostics.has_errors()) << t.name << " " << head_dim << "\n"
                                               << text_of(diagnostics);
      }
    }
  }
}

TEST(Tiles, TakesTheFirstValueOfAListThatFits) {
  SpecDocument document = make_document();
  document.spec.tile.k.values = {256, 32, 64};
  const Planned p = plan(document, 128, "sm_89");
  EXPECT_EQ(p.diagnostics, "");
  EXPECT_EQ(p.attend.tile_k.value, 32);
  EXPECT_EQ(p.attend.tile_k.origin, Origin::kSpec);
  EXPECT_EQ(p.attend.tile_k.reason, "first of the list that fits");
}

TEST(Tiles, SayWhatASmallerShapeIsFor) {
  EXPECT_EQ(plan(make_document(), 256, "sm_80").attend.tile_k.reason,
            "largest that fits the shared memory and registers of sm_80 at head_dim 256");
  EXPECT_EQ(plan(make_document(), 256, "sm_100a").attend.tile_k.reason, "good on every target");
}

TEST(Tiles, FollowTheWarpsIfOnlyTheyAreGiven) {
  SpecDocument document = make_document();
  document.spec.tile.warps.values = {4};
  const Planned p = plan(document, 128, "sm_90a");
  EXPECT_EQ(p.attend.tile_q.value, 64);
  EXPECT_EQ(p.attend.tile_q.origin, Origin::kDerived);
  EXPECT_EQ(p.attend.warps.origin, Origin::kSpec);
}

TEST(TileErrors, TooMuchSharedMemory) {
  SpecDocument document = make_document();
  document.spec.tile.k.values = {128};
  document.spans["/tile/k"] = {7, 20, 3};
  EXPECT_EQ(
      plan(document, 128, "sm_89").diagnostics,
      "error /tile/k: tile 128x128 with 2 stages at head_dim 128 needs 163840 bytes of shared "
      "memory, sm_89 has 101376 for a block\n"
      "note: (128 queries + 4 tiles * 128 keys) * 128 elements * 2 bytes: the query tile, and K "
      "and V tiles for each stage\n"
      "help: nearest legal values: tile.k = 64\n");
}

TEST(TileErrors, TooManyRegisters) {
  SpecDocument document = make_document();
  document.spec.tile.q.values = {256};
  document.spec.tile.k.values = {64};
  EXPECT_EQ(
      plan(document, 128, "sm_90a").diagnostics,
      "error : tile 256x64 with 2 stages at head_dim 128 needs about 216 registers a thread, "
      "sm_90a has 128 for 512 threads\n"
      "note: a warp keeps 16 rows of O and, up to head_dim 128, of Q (head_dim wide) and of S "
      "and P (tile.k wide) in registers\n"
      "help: nearest legal values: tile.q = 128\n");
}

TEST(TileErrors, WarpsThatDoNotMatchTheRows) {
  SpecDocument document = make_document();
  document.spec.tile.q.values = {128};
  document.spec.tile.warps.values = {4};
  EXPECT_EQ(plan(document, 128, "sm_90a").diagnostics,
            "error : tile.warps: expected 8 for tile.q = 128, got 4\n"
            "note: a warp owns 16 query rows: tile.q = 16 * tile.warps\n"
            "help: nearest legal values: tile.q = 64\n");
}

TEST(TileErrors, StagesAndLoadsHaveALeastSize) {
  SpecDocument document = make_document();
  document.spec.tile.stages.values = {1};
  document.spans["/tile/stages"] = {8, 20, 1};
  EXPECT_EQ(plan(document, 128, "sm_90a").diagnostics,
            "error /tile/stages: tile.stages: expected 2 or more, got 1\n"
            "note: a K tile is loaded while another is in use\n"
            "help: nearest legal values: tile.stages = 2\n");
  document.spec.tile.stages.values = {2};
  document.spec.tile.q.values = {48};
  EXPECT_EQ(plan(document, 128, "sm_90a").diagnostics,
            "error : tile.q = 48 has an odd number of warps\n"
            "note: the threads of a block load rows in eights, which takes two warps at head_dim "
            "128\n"
            "help: nearest legal values: tile.q = 32 or 64\n");
}

TEST(Tiles, AGateIsToldWhenItsTilesShrink) {
  EXPECT_EQ(plan(make_document(true), 128, "sm_89").diagnostics, "");
  EXPECT_EQ(plan(make_document(true), 256, "sm_89").diagnostics,
            "warning : the gate decides about tiles of 64x32 on sm_89, where 128x64 do not fit\n"
            "note: with other tiles the same gate skips other work\n"
            "help: to have one meaning everywhere, write tile.q = 64 and tile.k = 32\n"
            "perf : 4 warps run on an SM of sm_89, limited by shared memory\n"
            "note: with fewer than 8 warps the latency of loads shows\n");
}

TEST(Tiles, AGatedLoadOfVNeedsTwoValueTilesWhateverTheStages) {
  SpecDocument document = make_document(true);
  document.spec.tile.stages.values = {3};
  const Planned p = plan(document, 128, "sm_100a");
  EXPECT_EQ(p.attend.smem_bytes.value, (128 + 64 * (3 + 2)) * 128 * 2 + 8 * 16);
}

TEST(Tiles, TheCpuHasNoLimits) {
  SpecDocument document = make_document();
  document.spec.tile.q.values = {256};
  document.spec.tile.k.values = {256};
  const Planned p = plan(document, 256, "cpu");
  EXPECT_EQ(p.diagnostics, "");
  EXPECT_EQ(p.attend.tile_k.value, 256);
  EXPECT_EQ(p.attend.smem_bytes.value, 0);
}

}  // namespace
}  // namespace lacuna
