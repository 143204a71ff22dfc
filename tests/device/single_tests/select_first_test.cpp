// The first tiles of a row, by a warp, by a block and by several, against a sort of them all.
#include "tests/device/single/predict/select_first.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "templates/shared/select_block.cuh"
#include "tests/device/single/run_single.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kMostHeldTiles = 8192;
constexpr float kScoreInf = std::numeric_limits<float>::infinity();

struct FirstRowCase {
  std::vector<float> p;
  std::vector<char> sees;  ///< bools
  int tiles() const { return static_cast<int>(p.size()); }
};

/// As the kernels have it (single/predict/select_first.cpp).
struct Args {
  AttendArgs attend{};
  PredictArgs predict{};
  single::FirstRow row{};
};

/// A launch of a kernel of the row, with so many blocks.
struct Pass {
  single::FirstKernel kernel;
  int threads, blocks;
};

std::vector<unsigned> run(const std::vector<Pass>& passes, FirstRowCase row, int top, int step,
                          const emulation::Schedule& schedule) {
  Args args;
  args.attend.n_h = args.attend.heads_per_kv = 1;
  args.attend.n_q = 1, args.attend.n_k = row.tiles();
  args.predict.keep_q_tiles = 1, args.predict.keep_k_tiles = row.tiles();
  args.predict.keep_words = (row.tiles() + 31) / 32;
  Guarded<unsigned> kept(static_cast<std::size_t>(args.predict.keep_words));
  args.predict.kept = kept.data();
  std::vector<unsigned> bins(kRowBinsWords + 4);
  bins[kRowBinsWords] = std::bit_cast<unsigned>(-3.0F);
  bins[kRowBinsWords + 1] = std::bit_cast<unsigned>(3.0F);
  args.predict.row_bins = bins.data();
  args.row = {row.p.data(), reinterpret_cast<const bool*>(row.sees.data()), top, step};
  for (const Pass& pass : passes)
    for (int block = 0; block < pass.blocks; ++block)
      EXPECT_EQ(emulation::run_block(
                    {pass.kernel.kernel, &args, block, pass.threads, pass.kernel.smem_bytes, 1},
                    schedule),
                "");
  EXPECT_TRUE(kept.is_margin_intact());
  return {kept.data(), kept.data() + kept.size()};
}

/// Tiles by descending p, ties by index; a NaN ranks first and counts for no other tile. And each
/// step-th tile.
std::vector<unsigned> expected(const FirstRowCase& row, int top, int step) {
  std::vector<unsigned> kept(static_cast<std::size_t>(row.tiles() + 31) / 32);
  const auto keep = [&](int j) { kept[static_cast<std::size_t>(j) / 32] |= 1U << j % 32; };
  const auto p = [&](int j) { return row.p[static_cast<std::size_t>(j)]; };
  std::vector<int> order;
  for (int j = 0; j < row.tiles(); ++j) {
    if (row.sees[static_cast<std::size_t>(j)] == 0) continue;
    if (!std::isnan(p(j))) order.push_back(j);
    if ((std::isnan(p(j)) && top > 0) || (step > 0 && j % step == 0)) keep(j);
  }
  std::ranges::stable_sort(order, [&](int a, int b) { return p(a) > p(b); });
  for (int n = 0; n < std::min(top, static_cast<int>(order.size())); ++n)
    keep(order[static_cast<std::size_t>(n)]);
  return kept;
}

void check(const FirstRowCase& row, int top, const emulation::Schedule& schedule = kPlainSchedule) {
  for (const int step : {0, 7}) {
    SCOPED_TRACE(testing::Message()
                 << row.tiles() << " tiles, the first " << top << ", each " << step);
    const std::vector<unsigned> bits = expected(row, top, step);
    const bool by_place = step > 0;
    const auto runs = [&](const std::vector<Pass>& passes) {
      return run(passes, row, top, step, schedule);
    };
    if (row.tiles() <= single::kMostFirstTiles) {
      EXPECT_EQ(runs({{{single::first_by_warp_kernel(by_place), single::kFirstRowBytes}, 32, 1}}),
                bits)
          << "by a warp";
    }
    EXPECT_EQ(runs({{{single::first_by_block_kernel(by_place), single::kFirstRowBytes}, 256, 1}}),
              bits)
        << "by a block";
    if (row.tiles() <= kMostHeldTiles) {
      EXPECT_EQ(runs({{single::first_held_kernel(by_place), 256, 1}}), bits) << "held by a block";
    }
    const int shares = (row.tiles() + kShareTiles - 1) / kShareTiles;
    EXPECT_EQ(runs({{single::count_share_kernel(), 256, shares},
                    {single::decide_share_kernel(by_place), 256, shares}}),
              bits)
        << "by blocks with shares";
  }
}

/// draw() for each tile; a share of them is visible.
template <class Draw>
FirstRowCase make_row(int tiles, double visible, std::mt19937& random, Draw draw) {
  std::bernoulli_distribution sees(visible);
  FirstRowCase row;
  for (int j = 0; j < tiles; ++j) {
    row.p.push_back(draw());
    row.sees.push_back(sees(random));
  }
  return row;
}

/// Around the sizes at which the work is cut.
std::vector<int> tile_counts() {
  return test::by_tier(std::vector{1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1000},
                       {1, 32, 257, 513, 1000});
}

TEST(SelectFirst, AgreesWithASort) {
  std::mt19937 random(41);
  std::lognormal_distribution<float> normal(-6, 2);
  for (const int tiles : tile_counts()) {
    for (const double visible : {1.0, 0.5, 0.02}) {
      const FirstRowCase row = make_row(tiles, visible, random, [&] { return normal(random); });
      for (const int top :
           test::by_tier(std::vector{0, 1, 31, 32, 33, 511, 512, 513, 2000}, {0, 1, 33, 512, 2000}))
        check(row, top);
    }
  }
}

/// More tiles than a block has in registers: counted in bins, of which one may have many tiles,
/// all, or an infinity that leaves no width to them.
TEST(SelectFirst, FindsTheFirstOfLongRows) {
  std::mt19937 random(45);
  std::normal_distribution<float> normal;
  std::lognormal_distribution<float> wide(0, 12);
  std::uniform_int_distribution<int> few(0, 40);
  constexpr int kTiles = 8192 + 1037;
  const FirstRowCase rows[] = {
      make_row(6000, 0.9, random, [&] { return normal(random); }),
      make_row(6000, 0.9, random, [&] { return static_cast<float>(few(random)); }),
      make_row(kTiles, 0.9, random, [&] { return normal(random); }),
      make_row(kTiles, 1, random, [&] { return wide(random); }),
      make_row(kTiles, 0.4, random, [&] { return static_cast<float>(few(random)); }),
      make_row(kTiles, 1, random, [&] { return few(random) == 0 ? kScoreInf : normal(random); }),
      make_row(kTiles, 1, random, [&] { return few(random) == 0 ? kNan : normal(random); }),
      make_row(kTiles, 1, random, [] { return -2.0F; })};
  for (const FirstRowCase& row : rows)
    for (const int top : test::by_tier(std::vector{0, 1, 100, 2048, 9000}, {1, 2048}))
      check(row, top);
}

TEST(SelectFirst, BreaksTiesByIndex) {
  std::mt19937 random(42);
  std::uniform_int_distribution<int> few(0, 3);
  for (const int tiles : tile_counts()) {
    const FirstRowCase row =
        make_row(tiles, 0.8, random, [&] { return static_cast<float>(few(random)) * 0.1F; });
    for (const int top : {1, 20, tiles / 3, tiles / 2}) check(row, top);
    check(make_row(tiles, 1, random, [] { return 0.25F; }), tiles / 2);
  }
}

TEST(SelectFirst, TakesEveryFloat) {
  std::mt19937 random(43);
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  constexpr float kLargest = std::numeric_limits<float>::max();
  const float odd[] = {0.0F,   -0.0F,   kNan,     -kNan,     kScoreInf, -kScoreInf,
                       kLeast, -kLeast, kLargest, -kLargest, 1.0F,      -1.0F};
  std::uniform_int_distribution<std::size_t> any(0, std::size(odd) - 1);
  for (const int tiles : {33, 300, 512, 600}) {
    const FirstRowCase row = make_row(tiles, 0.9, random, [&] { return odd[any(random)]; });
    for (int top = 0; top <= tiles; top += 1 + tiles / 15) check(row, top);
  }
  const FirstRowCase all_nan = make_row(100, 0.9, random, [] { return kNan; });
  for (const int top : {0, 1, 50, 200}) check(all_nan, top);
}

TEST(SelectFirst, LeavesRowsWithoutVisibleTilesEmpty) {
  std::mt19937 random(44);
  for (const int tiles : {1, 64, 700}) check(make_row(tiles, 0, random, [] { return 1.0F; }), 5);
}

TEST(SelectFirst, GivesTheSameBitsUnderAnySchedule) {
  std::mt19937 random(45);
  std::uniform_int_distribution<int> few(0, 50);
  for (const int tiles : {300, 1000}) {
    const FirstRowCase row =
        make_row(tiles, 0.7, random, [&] { return static_cast<float>(few(random)); });
    for (const emulation::Schedule& schedule : kOtherSchedules) check(row, tiles / 4, schedule);
  }
}

}  // namespace
}  // namespace lacuna::device
