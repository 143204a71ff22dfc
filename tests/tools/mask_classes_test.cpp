// What the mask says of a tile, with the parameters of a run.
#include "tools/run/mask_classes.hpp"

#include <gtest/gtest.h>

namespace lacuna::tests {
namespace {

using tools::TileLook;

class MaskClassesOf : public ::testing::Test {
 protected:
  MaskClassesOf() {
    inputs_.q.shape = {1, 2, 300, 64};
    inputs_.k.shape = {1, 1, 320, 64};
  }

  /// Looks of tiles (h, i, 0 ... 4) of 128 x 64 that were visited where the bit of `visited` is 1.
  std::vector<TileLook> row(const std::string& spec, std::int32_t h, std::int32_t i,
                            unsigned visited) const {
    Diagnostics diagnostics;
    const SpecDocument document = read_spec({"x.json", spec}, diagnostics);
    EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, document.source);
    tools::MaskClasses classes(document, inputs_, 128, 64);
    std::vector<TileLook> looks;
    for (std::int32_t j = 0; j < 5; ++j)
      looks.push_back(classes.look(0, h, i, j, visited >> static_cast<unsigned>(j) & 1u));
    return looks;
  }

  tools::Inputs inputs_;
};

constexpr TileLook kFull = TileLook::kFull, kPartial = TileLook::kPartial,
                   kDropped = TileLook::kDropped, kHidden = TileLook::kInvisible;

TEST_F(MaskClassesOf, TilesAreInsideAcrossOrOutsideOfIt) {
  const char* const causal = R"({"version": 1, "name": "x", "attention": {"mask": "k <= q"}})";
  EXPECT_EQ(row(causal, 0, 0, 0b00011),
            (std::vector{kPartial, kPartial, kHidden, kHidden, kHidden}));
  EXPECT_EQ(row(causal, 0, 1, 0b00110),
            (std::vector{kDropped, kFull, kPartial, kDropped, kHidden}));
  // The last work tile ends with query 299, the last column with key 319.
  EXPECT_EQ(row(causal, 1, 2, 0b11111), (std::vector{kFull, kFull, kFull, kFull, kPartial}));
  const char* const last =
      R"({"version": 1, "name": "x", "attention": {"mask": "k >= n_k - 1 and q >= n_q - 1"}})";
  EXPECT_EQ(row(last, 0, 2, 0), (std::vector{kHidden, kHidden, kHidden, kHidden, kDropped}));
  EXPECT_EQ(row(last, 0, 1, 0), std::vector(5, kHidden));
}

TEST_F(MaskClassesOf, WithoutAMaskEverythingIsVisibleAndAGatedTileIsGated) {
  const char* const dense = R"({"version": 1, "name": "x"})";
  EXPECT_EQ(row(dense, 0, 0, 0b00001),
            (std::vector{kFull, kDropped, kDropped, kDropped, kDropped}));
  Diagnostics diagnostics;
  const SpecDocument document = read_spec({"x.json", dense}, diagnostics);
  EXPECT_EQ(tools::MaskClasses(document, inputs_, 128, 64).look(0, 0, 0, 0, 2), TileLook::kGated);
}

TEST_F(MaskClassesOf, ParametersAreThoseOfTheRun) {
  const char* const shifted = R"({"version": 1, "name": "x", "attention": {"mask": "k < end"},
      "params": {"end": {"type": "i32", "shape": "[heads]", "default": 64}}})";
  EXPECT_EQ(row(shifted, 0, 0, 0), (std::vector{kDropped, kHidden, kHidden, kHidden, kHidden}));
  inputs_.params.push_back({.name = "end", .tensor = std::nullopt, .value = 128, .origin = ""});
  EXPECT_EQ(row(shifted, 0, 0, 0), (std::vector{kDropped, kDropped, kHidden, kHidden, kHidden}));
  inputs_.params[0].tensor =
      tools::from_f32(std::vector<float>{0, 192}, {2}, tools::ArrayType::kI32);
  EXPECT_EQ(row(shifted, 0, 0, 0), std::vector(5, kHidden));
  EXPECT_EQ(row(shifted, 1, 0, 0b00001),
            (std::vector{kFull, kDropped, kDropped, kHidden, kHidden}));
}

}  // namespace
}  // namespace lacuna::tests
