// Pictures of made-up results as they stand in pictures/: open them in a browser where one changes.
#include <limits>

#include "tests/spec/golden_file.hpp"
#include "tools/picture/calibration_picture.hpp"
#include "tools/picture/compare_picture.hpp"
#include "tools/picture/mask_picture.hpp"

namespace lacuna::tests {
namespace {

void expect_picture(const std::string& name, const tools::Picture& picture) {
  test::expect_golden(LACUNA_SOURCE_DIR "/tests/tools/pictures/" + name + ".svg",
                      tools::print_svg(picture));
}

TEST(Pictures, TilesOfTwoHeads) {
  expect_picture(
      "mask", tools::mask_picture({.title = "made up",
                                   .captions = {"head 0", "head 1"},
                                   .q_tiles = 3,
                                   .k_tiles = 5,
                                   .look = [](std::size_t panel, std::int64_t i, std::int64_t j) {
                                     const auto look = (i * 5 + j) * (panel ? 2 : 1);
                                     return tools::TileLook(look % tools::kTileLooks);
                                   }}));
}

TEST(Pictures, MoreTilesThanCells) {
  expect_picture("blended",
                 tools::mask_picture({.title = "made up",
                                      .captions = {"head 0"},
                                      .q_tiles = 2,
                                      .k_tiles = 300,
                                      .look = [](std::size_t, std::int64_t i, std::int64_t j) {
                                        return j < 100 * (i + 1) || j % 3 == 0
                                                   ? tools::TileLook::kFull
                                                   : tools::TileLook::kDropped;
                                      }}));
}

TEST(Pictures, DensityAgainstError) {
  const double inf = std::numeric_limits<double>::infinity();
  expect_picture(
      "compare",
      tools::compare_picture(
          "made up",
          {{"a", 0.2, 0.1}, {"b", 0.8, 2e-5}, {"a", 0.5, 3}, {"b", 0.9, 0}, {"c < d", 0.3, inf}}));
}

TEST(Pictures, HeadsOfACalibration) {
  tools::Calibration calibration;
  calibration.spec = "made-up";
  calibration.target_rel_l1 = 0.05;
  calibration.dense = {false, true};
  calibration.samples.resize(3);
  calibration.samples[2].held_out = true;
  calibration.results = {{{.density = 0.25, .rel_l1 = 0.01}, {.density = 1, .rel_l1 = 0}},
                         {{.density = 0.5, .rel_l1 = 0.04}, {.density = 1, .rel_l1 = 0.03}},
                         {{.density = 0.75, .rel_l1 = 0.07}, {.density = 1, .rel_l1 = 0.02}}};
  expect_picture("calibration", tools::calibration_picture(calibration));
}

}  // namespace
}  // namespace lacuna::tests
