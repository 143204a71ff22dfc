// The wgmma family with rows that are no whole panels, or with values of another width than keys.
#include "tests/passes/planned_wgmma.hpp"

namespace lacuna {
namespace {

TEST(WgmmaWidths, RowsOfOtherWidthsAreOf16BitTiles) {
  const std::string ours = "wgmma: the tensor cores of sm_90a by TMA";
  for (const int d : {80, 96, 112, 192}) {
    const PlannedWgmma p = planned(make_document(), {.head_dim = d});
    EXPECT_EQ(family_of(p), ours) << d;
    EXPECT_EQ(tiles_of(p), d == 192 ? "128x64x2" : "128x128x2") << d;
  }
  EXPECT_EQ(tiles_of(planned(make_document(), {.head_dim = 192, .head_dim_v = 128})), "128x128x2");
  // Where O is wider than the queries, their place in shared memory is as wide as O, and registers
  // are those of rows of its width: no third warpgroup.
  const PlannedWgmma wide_values = planned(make_document(), {.head_dim = 64, .head_dim_v = 128});
  EXPECT_EQ(family_of(wide_values), ours);
  EXPECT_EQ(tiles_of(wide_values), "128x128x2");
  EXPECT_EQ(wide_values.attend().smem_bytes.value,
            1024 + (128 * 2 + 2 * 128) * 128 * 2 + 2 * 128 * 64 * 2);
  EXPECT_EQ(family_of(planned(read_document(R"("tile": {"split_kv": 2})"), {.head_dim = 80})),
            ours);
  const auto in_batch = [](BuildOptions options) {
    options.batch = BatchLayout::kSequences;
    return family_of(planned(make_document(), options));
  };
  EXPECT_EQ(in_batch({.head_dim = 112}), ours);
  EXPECT_EQ(in_batch({.head_dim = 192, .head_dim_v = 128}), ours);
  EXPECT_EQ(in_batch({.head_dim = 80, .head_dim_v = 112}), ours);
}

/// If keys and values differ in width, the producer has one copy of its loading code for keys and
/// one for values, and needs more registers. Consumers can give some of theirs away if rows of O
/// are short, or if queries stay in shared memory.
TEST(WgmmaWidths, ProducersOfTwoWidthsHaveMoreRegisters) {
  const auto registers = [](int head_dim, int head_dim_v, BatchLayout batch, KvFormat kv) {
    return planned(make_document(),
                   {.head_dim = head_dim, .batch = batch, .kv = kv, .head_dim_v = head_dim_v})
        .attend()
        .registers.value;
  };
  constexpr auto kUniform = BatchLayout::kUniform, kPages = BatchLayout::kPages;
  constexpr auto kSame = KvFormat::kSame, kCodes = KvFormat::kE4M3;
  EXPECT_EQ(registers(192, 128, kUniform, kSame), 240);
  EXPECT_EQ(registers(192, 0, kPages, kSame), 232);
  EXPECT_EQ(registers(192, 128, kPages, kSame), 224);
  EXPECT_EQ(registers(64, 128, kPages, kSame), 224);
  EXPECT_EQ(registers(64, 256, kPages, kSame), 232);
  EXPECT_EQ(registers(192, 256, kPages, kSame), 224);
  EXPECT_EQ(registers(192, 128, kPages, kCodes), 216);
  EXPECT_EQ(registers(192, 128, kUniform, kCodes), 232);
}

TEST(WgmmaWidths, StepsOfWideCodesAreShort) {
  const auto step_keys = [](int head_dim, int head_dim_v, KvFormat kv) {
    const PlannedWgmma p =
        planned(make_document(), {.head_dim = head_dim, .kv = kv, .head_dim_v = head_dim_v});
    EXPECT_EQ(p.attend().family.value, AttendFamily::kWgmma) << head_dim;
    return p.attend().step_keys.value;
  };
  EXPECT_EQ(step_keys(192, 128, KvFormat::kSame), 128);
  EXPECT_EQ(step_keys(192, 128, KvFormat::kE4M3), 64);
  EXPECT_EQ(step_keys(192, 64, KvFormat::kE4M3), 128);
}

}  // namespace
}  // namespace lacuna
