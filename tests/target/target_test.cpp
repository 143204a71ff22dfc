#include "compiler/target/target.hpp"

#include <gtest/gtest.h>

#include "compiler/target/wgmma_limits.hpp"

namespace lacuna {
namespace {

TEST(Target, IsFoundByNameAndByComputeCapability) {
  EXPECT_EQ(all_targets().size(), 7u);
  EXPECT_EQ(find_target("sm_90a")->compute_capability, 90);
  EXPECT_FALSE(find_target("sm_90").has_value());
  EXPECT_EQ(target_for_compute_capability(90)->name, "sm_90a");
  EXPECT_EQ(target_for_compute_capability(86)->name, "sm_86");
  EXPECT_FALSE(target_for_compute_capability(75).has_value());
  EXPECT_FALSE(target_for_compute_capability(0).has_value()) << "the CPU has none";
}

TEST(Target, FactsAgreeWithOneAnother) {
  for (const Target& t : all_targets()) {
    if (t.kind == TargetKind::kCpu) {
      EXPECT_EQ(t.smem_bytes_per_block, 0);
      continue;
    }
    EXPECT_EQ(t.smem_bytes_per_block + t.smem_bytes_reserved, t.smem_bytes_per_sm) << t.name;
    EXPECT_EQ(t.threads_per_sm % 32, 0) << t.name;
    EXPECT_EQ(target_for_compute_capability(t.compute_capability)->name, t.name);
  }
}

TEST(Limits, SharedMemoryIsTheSumOfTheTiles) {
  const TileShape plain{128, 64, 2, 128};
  EXPECT_EQ(smem_bytes(plain), 98304);
  EXPECT_EQ(smem_formula(plain), "(128 queries + 4 tiles * 64 keys) * 128 elements * 2 bytes");
  TileShape gated = plain;
  gated.votes = true;
  EXPECT_EQ(smem_bytes(gated), 98304 + 8 * 16);
  gated.values_on_demand = true;
  gated.stages = 3;
  EXPECT_EQ(smem_bytes(gated), (128 + 64 * 5) * 256 + 128);
  EXPECT_EQ(smem_formula(gated),
            "(128 queries + 5 tiles * 64 keys) * 128 elements * 2 bytes + 128 of votes");
}

TEST(Limits, SharedMemoryOf8BitElements) {
  const TileShape integers{.tile_q = 128, .tile_k = 64, .stages = 2, .head_dim = 128, .qk_bits = 8};
  EXPECT_EQ(smem_bytes(integers), 128 * 128 * 2 + 64 * 128 * (2 * 1 + 2 * 2))
      << "the output is put together where the queries were";
  EXPECT_EQ(smem_formula(integers),
            "(128 queries * 2 bytes + 64 keys * (2 * 1 + 2 * 2)) * 128 elements");
  TileShape both = integers;
  both.v_bits = 8;
  both.votes = both.values_on_demand = true;
  both.stages = 3;
  EXPECT_EQ(smem_bytes(both), 128 * 128 * 2 + 64 * 128 * (3 + 2) + 8 * 16);
  EXPECT_EQ(smem_formula(both),
            "(128 queries * 2 bytes + 64 keys * (3 * 1 + 2 * 1)) * 128 elements + 128 of votes");
  EXPECT_LT(registers_estimate(both), registers_estimate(integers));
}

TEST(Limits, SharedMemoryOfAnEstimateIsItsRowsAndKeys) {
  EXPECT_EQ(estimate_smem_bytes(64, 128), (64 + 128) * 128 * 2 + 4096);
  EXPECT_EQ(estimate_smem_formula(64, 128), "(64 + 128) * 128 * 2 + 4096");
}

TEST(Limits, SharedMemoryOfTheWgmmaFamily) {
  const WgmmaShape usual{128, 128, 2, 128, 2, 2};
  EXPECT_EQ(usual.warpgroups(), 2);
  EXPECT_EQ(usual.warps(), 8);
  EXPECT_EQ(usual.threads(), 384);
  EXPECT_EQ(usual.step_keys(), 128);
  EXPECT_EQ(smem_bytes(usual), 197632);
  EXPECT_EQ(smem_formula(usual),
            "1024 of control + (2 * 128 queries + (2 + 2) * 128 keys) * 128 elements * 2 bytes");
  const WgmmaShape narrow{128, 64, 3, 64, 3, 2}, wide{128, 64, 2, 256, 2, 1};
  EXPECT_EQ(smem_bytes(narrow), 1024 + (256 + 6 * 128) * 64 * 2) << "a step is 128 keys";
  EXPECT_EQ(wide.step_keys(), 64);
  EXPECT_EQ(smem_bytes(wide), 1024 + (128 + 4 * 64) * 256 * 2);
  const WgmmaShape few_values{128, 64, 3, 128, 2, 2};
  EXPECT_EQ(smem_bytes(few_values), 1024 + (256 + 5 * 128) * 128 * 2);
  EXPECT_EQ(smem_formula(few_values),
            "1024 of control + (2 * 128 queries + (3 + 2) * 128 keys) * 128 elements * 2 bytes");
}

TEST(Limits, RegistersOfTheWgmmaFamilyFitAnSm) {
  std::vector<WgmmaShape> shapes = {{128, 128, 2, 64, 2, 1}, {192, 128, 2, 64, 2, 1}};
  for (const bool e4m3_rows : {false, true}) {
    for (const int head_dim_v : {0, 128}) {
      WgmmaShape& shape = shapes.emplace_back(WgmmaShape{128, 64, 2, 192, 2, 1});
      shape.packs_heads = true, shape.e4m3_rows = e4m3_rows, shape.head_dim_v = head_dim_v;
    }
  }
  for (const WgmmaShape& shape : shapes) {
    const WgmmaRegisters registers = registers_of(shape);
    EXPECT_LE(128 * (shape.warpgroups() * registers.consumer + registers.producer),
              find_target("sm_90a")->registers_per_sm);
    EXPECT_EQ(registers.consumer % 8, 0);
    EXPECT_EQ(registers.producer % 8, 0);
  }
}

TEST(Target, OnlySm90aHasWgmma) {
  for (const Target& t : all_targets()) EXPECT_EQ(t.has_wgmma, t.name == "sm_90a");
}

TEST(Target, MultipliesE4m3FromSm89On) {
  for (const Target& t : all_targets()) {
    EXPECT_EQ(t.has_e4m3_mma, t.compute_capability >= 89) << t.name;
    EXPECT_TRUE(t.has_e4m3_mma || !t.converts_e4m3_mma) << t.name;
  }
}

TEST(Limits, OccupancyIsTheTightestResource) {
  const Target h200 = *find_target("sm_90a");
  EXPECT_EQ(occupancy({128, 64, 2, 64}, h200).limited_by, "registers");
  const Occupancy wide = occupancy({128, 32, 2, 256}, h200);
  EXPECT_EQ(wide.blocks, 1);
  EXPECT_EQ(wide.limited_by, "shared memory and registers") << "each of them allows one";
  const Occupancy both = occupancy({64, 64, 2, 128}, h200);
  EXPECT_EQ(both.blocks, 2);
  EXPECT_EQ(both.limited_by, "shared memory and registers");
}

TEST(Limits, RegistersOfAThreadShrinkWithTheBlock) {
  const Target a100 = *find_target("sm_80");
  EXPECT_EQ(registers_limit({128, 64, 2, 128}, a100), 255);
  EXPECT_EQ(registers_limit({256, 64, 2, 128}, a100), 128);
}

}  // namespace
}  // namespace lacuna
