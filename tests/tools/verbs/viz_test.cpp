// viz: pictures of kept tiles, and of density against error.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/tools/command.hpp"
#include "tests/tools/problem.hpp"
#include "tools/picture/compare_picture.hpp"
#include "tools/picture/mask_picture.hpp"

namespace lacuna::tests {
namespace {

using tools::TileLook;

class Viz : public ::testing::Test {
 protected:
  Viz()
      : input_(scratch_.write("x.safetensors", tools::print_safetensors(small_problem(
                                                   2, 300, 64, tools::ArrayType::kBF16)))) {}

  CommandResult viz(std::vector<std::string> more) const {
    more.insert(more.begin(), "viz");
    more.insert(more.end(), {"--device", "cpu", "--input", input_});
    return run_lacuna(more);
  }

  ScratchDirectory scratch_;
  std::string input_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_F(Viz, DrawsTheTilesOfEachHeadAndCountsThem) {
  const std::string out = scratch_.file("mask.svg");
  const CommandResult result = viz(
      {"mask", source_file("specs/bsfa.json"), "--param", "threshold=inf", "-o", out, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto document = parse_document(result);
  ASSERT_EQ(document["heads"].size(), 2u);
  // Tiles of 128 x 64 under a causal mask: 2 + 4 + 5 visible; those before the row's first query
  // are gated, the others cross the diagonal.
  EXPECT_EQ(document["heads"][1], nlohmann::json({{"batch", 0},
                                                  {"head", 1},
                                                  {"visible", 11},
                                                  {"kept", 11},
                                                  {"partial", 5},
                                                  {"gated", 6}}));
  const std::string picture = read_bytes(out);
  EXPECT_TRUE(picture.starts_with("<svg "));
  EXPECT_TRUE(picture.ends_with("</svg>\n"));
  EXPECT_EQ(count(picture, "head 0: kept 100.0 %, gated 54.5 %"), 1u);
}

TEST_F(Viz, ComparesSpecsByDensityAndError) {
  const std::string out = scratch_.file("compare.svg");
  const CommandResult result = viz({"compare", source_file("specs/dense.json"),
                                    source_file("specs/window.json"), "-o", out, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto points = parse_document(result)["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0]["spec"], "dense");
  EXPECT_EQ(points[0]["visited"], points[0]["visible"]);
  EXPECT_EQ(points[0]["rel_l1"], 0.0);
  EXPECT_EQ(count(read_bytes(out), "<circle"), 4u) << "two dots, and two in the legend";
}

TEST_F(Viz, WhatSeesNoKeyHasNoDensity) {
  const std::string out = scratch_.file("compare.svg");
  const std::string blind = scratch_.write(
      "blind.json", R"({"version": 1, "name": "blind", "attention": {"mask": "k < 0"}})");
  const CommandResult result = viz({"compare", blind, source_file("specs/dense.json"), "-o", out});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string picture = read_bytes(out);
  const auto place_of = [&picture](std::size_t circle) {
    constexpr std::string_view kBegin = "<circle cx=\"";
    std::size_t at = 0;
    for (std::size_t n = 0; n <= circle; ++n) at = picture.find(kBegin, at) + kBegin.size();
    return std::strtod(picture.c_str() + at, nullptr);
  };
  EXPECT_LT(place_of(0), place_of(1)) << picture;
}

TEST_F(Viz, WritesAPngWhereThereIsCairoAndSaysSoWhereThereIsNot) {
  const std::string out = scratch_.file("mask.png");
  // The fonts' library keeps what it has read until the process ends.
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  const CommandResult result = viz({"mask", source_file("specs/dense.json"), "-o", out});
  ::unsetenv("ASAN_OPTIONS");
  if (result.status == 0) {
    EXPECT_TRUE(read_bytes(out).starts_with("\x89PNG\r\n\x1a\n"));
    return;
  }
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("a PNG needs cairo"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("install libcairo2, or write an .svg"), std::string::npos);
}

TEST_F(Viz, RefusesAPictureOfUnknownFormatAndLeavesNothing) {
  const std::string out = scratch_.file("mask.gif");
  const CommandResult result = viz({"mask", source_file("specs/dense.json"), "-o", out});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("a picture's name ends in .svg or .png"), std::string::npos)
      << result.err;
  EXPECT_EQ(scratch_.names(), std::vector<std::string>{"x.safetensors"});
}

TEST(MaskPicture, BlendsTilesThatShareACellAndJoinsNeighboursOfOneColor) {
  tools::MaskPanels panels{.title = "t",
                           .captions = {"a"},
                           .q_tiles = 1,
                           .k_tiles = 256,
                           .look = [](std::size_t, std::int64_t, std::int64_t j) {
                             return j < 128 ? TileLook::kFull
                                            : (j % 2 == 0 ? TileLook::kFull : TileLook::kDropped);
                           }};
  const tools::Picture picture = mask_picture(panels);
  // 128 cells of two tiles: one run of full ones, one of mixed ones; then five in the legend.
  ASSERT_EQ(picture.rectangles.size(), 2u + tools::kTileLooks);
  EXPECT_EQ(picture.rectangles[0].fill.blue, 0x8c);
  EXPECT_NEAR(picture.rectangles[1].fill.blue, (0x8c + 0xe2) / 2, 8) << "one of a few shades";
  EXPECT_DOUBLE_EQ(picture.rectangles[0].width, picture.rectangles[1].width);
}

TEST(ComparePicture, HigherErrorStandsHigherAndHigherDensityFurtherRight) {
  const tools::Picture picture =
      tools::compare_picture("t", {{"a", 0.2, 0.1}, {"b", 0.8, 0.001}, {"b", 0.9, 0}});
  ASSERT_EQ(picture.dots.size(), 3u + 2u);
  EXPECT_LT(picture.dots[0].x, picture.dots[1].x);
  EXPECT_LT(picture.dots[0].y, picture.dots[1].y);
  EXPECT_LT(picture.dots[1].y, picture.dots[2].y) << "no error at all is at the bottom";
}

TEST(Picture, SvgEscapesWhatXmlReads) {
  tools::Picture picture{.width = 10, .height = 10};
  picture.labels.push_back({.x = 1, .y = 2, .text = "a < b & c"});
  EXPECT_NE(tools::print_svg(picture).find(">a &lt; b &amp; c</text>"), std::string::npos);
}

}  // namespace
}  // namespace lacuna::tests
