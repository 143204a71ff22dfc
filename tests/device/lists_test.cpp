// Lists of the caller's that two work tiles of a block go through together
// (templates/pipeline/two_list_walk.cuh), on emulated blocks.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/runner.hpp"

namespace lacuna::device {
namespace {

constexpr int kWorkTileQueries = 64;

/// The first work tile lists its first and its last tile, the second one all tiles between them.
void list_ends_and_between(oracle::Tiling& tiling, int k_tiles) {
  std::ranges::fill(tiling.listed, std::uint8_t{0});
  for (int j = 0; j < k_tiles; ++j) {
    const bool is_end = j == 0 || j == k_tiles - 1;
    tiling.listed[static_cast<std::size_t>((is_end ? 0 : k_tiles) + j)] = 1;
  }
}

/// While the second work tile has its tiles the first one passes them on, and its first product
/// with V is still to be issued. Its last tile is the last step of the block: behind it comes the
/// end, and no step whose keys the first work tile could wait for.
TEST(Lists, TilesOfOneWorkTileMayBePassedOnUpToTheLast) {
  int found = 0;
  for (const Subject& subject : subjects()) {
    for (int between = 0; between < 8; ++between) {
      numerics::Case shape;
      shape.n_q = 2 * kWorkTileQueries;
      shape.n_k = kWorkTileQueries * (between + 2);
      Problem problem = make_problem(subject, shape, 31);
      oracle::Tiling& tiling = problem.variant.tiling;
      if (tiling.listed.empty() || tiling.tile_q != kWorkTileQueries) break;
      const int k_tiles = (problem.shape.n_k + tiling.tile_k - 1) / tiling.tile_k;
      list_ends_and_between(tiling, k_tiles);
      ++found;
      SCOPED_TRACE(testing::Message() << subject.name << ", " << k_tiles << " tiles");
      const numerics::Reported got = run(subject, problem, {});
      EXPECT_EQ(check_variant(problem.shape, problem.variant, got, true), "");
    }
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace lacuna::device
