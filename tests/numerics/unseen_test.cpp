// What a key holds is no concern of a row that does not see it: NaN and infinity in K and V, at
// keys that the mask hides, in tiles and columns that are not visited, and behind the last key.
#include "tests/numerics/harness/unseen.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace lacuna::numerics {
namespace {

/// Masks, gates, lists, columns, 8 bits; each kind of predictor that has to look at all keys.
const char* const kNames[] = {
    "window",        "bsfa",         "skip-softmax",           "lists",
    "external-mask", "lists-64x32",  "lists-64x128-tile-gate", "flash-decoding",
    "first-columns", "sparge",       "int8-lists-64x64-gate",  "int8-lists-64x64-e4m3",
    "topk-blocks",   "similar-mass", "int8-tile-gate",         "columns-pooled",
    "shared-heads",  "sale",         "fg-attn-pooled",         "xattention"};

class Unseen : public testing::TestWithParam<const char*> {};

/// The last queries see the tokens. Rows before them do not, though some visit their tile.
TEST_P(Unseen, KeysMayHoldAnything) {
  const Case c{GetParam(), DType::kBF16, 64, 1, 4, 2, 270, 290, Fill::kNormal, false};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const std::vector<int> tokens = {276, 280, 284, 288};
  const Variant clean = cleared(make_variant(c, kernel.tile, 41), tokens);
  const Reported of_clean = run_variant(engine(), kernel, c, clean);
  int rows = 0;
  for (const bool in_v : {false, true}) {
    SCOPED_TRACE(in_v ? "in V" : "in K");
    const Poison poison{in_v, tokens};
    // On a GPU a weight of 0 meets V of all keys of a visited tile (lacuna.h), and 128 rows may
    // share a reference: without a NaN in one of them the others are rounded alike.
    const Promise promise = {engine().is_cuda && !in_v ? 128 : 1, engine().is_cuda && in_v};
    const UnseenComparison result =
        compare_unseen(clean, poison, promise, of_clean,
                       run_variant(engine(), kernel, c, poisoned(clean, poison)));
    EXPECT_EQ(result.difference, "");
    rows += result.rows;
  }
  EXPECT_GT(rows, 0) << "nobody was asked";
}

TEST_P(Unseen, NothingBehindTheLastKeyIsRead) {
  const Case c{GetParam(), DType::kBF16, 64, 2, 4, 2, 70, 290, Fill::kNormal, true};
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  const Variant variant = make_variant(c, kernel.tile, 42);
  const Reported clean = run_variant(engine(), kernel, c, variant);
  ASSERT_EQ(clean.error, "");
  Binding longer(engine().is_cuda, c, variant);
  ASSERT_EQ(longer.provide(kernel, c), "");
  poison_behind_the_last_key(longer, c, variant);
  ASSERT_EQ(lacuna_launch(kernel.kernel, &longer.args), LACUNA_OK) << lacuna_last_error();
  const Reported got = longer.collect();
  EXPECT_EQ(got.o, clean.o);
  EXPECT_EQ(got.lse, clean.lse);
  EXPECT_EQ(got.tile_mask, clean.tile_mask);
}

INSTANTIATE_TEST_SUITE_P(Variants, Unseen, testing::ValuesIn(kNames), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace lacuna::numerics
