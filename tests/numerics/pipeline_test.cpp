// What goes wrong in kernels that load, multiply and write asynchronously: rings that lose step,
// operands that are permuted, keys that do not exist, rows that see nothing. README.md says which
// test is for which. More work tiles than a GPU has multiprocessors, so that blocks walk
// several.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/numerics/harness/harness.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {
namespace {

constexpr int kHeadDims[] = {64, 128, 256};
constexpr int kManyRows = 420;  ///< three for each of 132 multiprocessors, and some

std::int64_t tiles_of(int tokens, int tile) { return (tokens + tile - 1) / tile; }

/// A variant that visits the tiles for which `lists_tile(row, j, tile)` holds; work tile,
/// counted through all heads, key tile, and their sizes.
template <class Lists>
void check_lists(Case c, int tokens_of_k_tiles, Lists lists_tile) {
  SCOPED_TRACE(c.text());
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  if (tokens_of_k_tiles > 0) c.n_k = tokens_of_k_tiles * kernel.tile.k;
  Variant variant = make_variant(c, kernel.tile, 21);
  const std::int64_t rows = c.n_b * c.n_h * tiles_of(c.n_q, kernel.tile.q);
  variant.tiling.listed.clear();
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = 0; j < tiles_of(c.n_k, kernel.tile.k); ++j)
      variant.tiling.listed.push_back(lists_tile(row, j, kernel.tile) ? 1 : 0);
  EXPECT_EQ(check_variant(c, variant, run_variant(engine(), kernel, c, variant), engine().is_cuda),
            "");
}

/// Slots and phases of the rings run on from row to row, over rows of every length up to more than
/// two rounds, none among them.
TEST(Pipeline, ListsOfEveryLengthInAnyOrder) {
  constexpr int kTiles = 6;
  std::mt19937 random(1);
  std::vector<std::uint32_t> chosen;  // tiles of each row, a bit each; equally many of each length
  for (int row = 0; row < kManyRows; ++row) {
    std::uint32_t bits = 0;
    while (std::popcount(bits) < row % (kTiles + 1)) bits |= 1u << random() % kTiles;
    chosen.push_back(bits);
  }
  std::ranges::shuffle(chosen, random);
  for (const char* name : {"external-mask", "lists"}) {
    for (const int d :
         test::by_tier(std::vector(std::begin(kHeadDims), std::end(kHeadDims)), {64})) {
      const Case c{name, DType::kBF16,  d,    1, kManyRows, kManyRows / 10, 20,
                   0,    Fill::kUneven, false};
      check_lists(c, kTiles, [&](std::int64_t row, std::int64_t j, KernelTile) {
        return (chosen[static_cast<std::size_t>(row)] >> j & 1) != 0;
      });
    }
  }
}

/// The same where a block takes two neighbouring rows: all lengths of the one beside all of the
/// other, tiles of both, of either and of neither; in each head a last row is alone.
TEST(Pipeline, NeighbouringListsOfEveryLength) {
  // A CPU has no rings: in the short tier lists of up to three tiles.
  const int tiles = test::by_tier(7, 3), heads = 2 * (tiles + 1) * (tiles + 1);
  constexpr int kRowsOfHead = 3;
  std::mt19937 random(2);
  std::vector<std::uint32_t> chosen;
  const auto choose = [&](int length) {
    std::uint32_t bits = 0;
    while (std::popcount(bits) < length) bits |= 1u << random() % tiles;
    chosen.push_back(bits);
  };
  for (int head = 0; head < heads; ++head) {
    choose(head % (tiles + 1));
    choose(head / (tiles + 1) % (tiles + 1));
    choose(static_cast<int>(random() % (tiles + 1)));
  }
  for (const std::string& name : narrow_list_names()) {
    for (const int d : test::by_tier(std::vector{64, 128}, {64})) {
      const Case c{name, DType::kBF16,  d,    1, heads, heads / 4, 64 * (kRowsOfHead - 1) + 20,
                   0,    Fill::kUneven, false};
      check_lists(c, tiles, [&](std::int64_t row, std::int64_t j, KernelTile) {
        return (chosen[static_cast<std::size_t>(row)] >> j & 1) != 0;
      });
    }
  }
}

/// The first tiles that a row visits, or all of them, have nothing for it.
TEST(Pipeline, RowsThatSeeNothingAtFirst) {
  constexpr int kTokens = 700;
  for (const int d : kHeadDims) {
    const Case c{"lists-descending", DType::kBF16, d, 1, 4, 2, kTokens, kTokens,
                 Fill::kUneven,      false};
    check_lists(c, 0, [](std::int64_t row, std::int64_t j, KernelTile tile) {
      const std::int64_t q_tiles = tiles_of(kTokens, tile.q), i = row % q_tiles;
      const bool is_invisible = j * tile.k >= (i + 1) * tile.q;
      switch ((row / q_tiles + i) % 4) {
        case 0:
          return is_invisible;
        case 1:
          return is_invisible || j == 0;
        case 2:
          return false;
        default:
          return true;
      }
    });
  }
}

/// Queries and keys of one channel each: every score but one of a row is 0, that one is huge, and O
/// is a row of V to the bit. Keys and channels that are mistaken for one another show.
TEST(Pipeline, EachKeyAndChannelIsWhereItBelongs) {
  constexpr int kKeys = 256, kHeads = 64;
  constexpr double kLarge = 64;
  for (const int d : kHeadDims) {
    SCOPED_TRACE(d);
    const Case c{"dense", DType::kBF16, d, 1, kHeads, kHeads, d, kKeys, Fill::kNormal, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile, 4);
    oracle::Problem& p = variant.problem;
    std::ranges::fill(p.q, 0.0);
    std::ranges::fill(p.k, 0.0);
    const auto element = [&](int head, int tokens, int token, int channel) {
      return static_cast<std::size_t>((head * tokens + token) * d + channel);
    };
    const auto channel_of = [&](int query) { return (query * 5 + 3) % d; };
    const auto key_of = [&](int head, int channel) {
      return (head * 4 + channel * 37 + channel / (d / 4)) % kKeys;
    };
    for (int h = 0; h < kHeads; ++h) {
      for (int q = 0; q < d; ++q) {
        const int channel = channel_of(q);
        p.q[element(h, d, q, channel)] = kLarge;
        p.k[element(h, kKeys, key_of(h, channel), channel)] = kLarge;
      }
    }
    const Reported got = run_variant(engine(), kernel, c, variant);
    ASSERT_EQ(got.error, "");
    for (int h = 0; h < kHeads; ++h) {
      for (int q = 0; q < d; ++q) {
        const int key = key_of(h, channel_of(q));
        for (int channel = 0; channel < d; ++channel) {
          ASSERT_EQ(got.o[element(h, d, q, channel)], p.v[element(h, kKeys, key, channel)])
              << "head " << h << ", query " << q << ", key " << key << ", channel " << channel;
        }
        const double expected = kLarge * kLarge * p.scale;
        ASSERT_NEAR(got.lse[static_cast<std::size_t>(h * d + q)], expected, 1e-4 * expected);
      }
    }
  }
}

/// What lies behind the last key scores 0, which here would outweigh all that is there.
TEST(Pipeline, NoKeyBehindTheLastCounts) {
  for (const char* name : {"dense", "document", "lists", "bsfa"}) {
    Case c{name, DType::kBF16, 128, 1, 2, 1, 40, 0, Fill::kNormal, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    for (const int n_k : {1, 7, 63, 65, 100, 127, 129, 191, 193, 255, 257, 320}) {
      c.n_k = n_k;
      SCOPED_TRACE(c.text());
      Variant variant = make_variant(c, kernel.tile, 8);
      std::ranges::fill(variant.problem.q, 2.0);
      std::ranges::fill(variant.problem.k, -2.0);
      for (double& v : variant.problem.v) v = round_to(c.dtype, 1 + std::abs(v));
      EXPECT_EQ(
          check_variant(c, variant, run_variant(engine(), kernel, c, variant), engine().is_cuda),
          "");
    }
  }
}

/// Each step's scores are larger than all before, by nothing for the first queries and by a factor
/// of 2^40 for the last: what is older has to be scaled down again and again.
TEST(Pipeline, LogitsThatGrowFromStepToStep) {
  for (const char* name : {"dense", "lists", "lists-descending"}) {
    for (const int d : kHeadDims) {
      const Case c{name, DType::kBF16, d, 1, 2, 1, 300, 900, Fill::kNormal, false};
      SCOPED_TRACE(c.text());
      TestKernel kernel(engine(), c);
      ASSERT_EQ(kernel.error, "");
      Variant variant = make_variant(c, kernel.tile, 12);
      std::ranges::fill(variant.tiling.listed, std::uint8_t{1});
      oracle::Problem& p = variant.problem;
      for (std::size_t x = 0; x < p.q.size(); ++x) {
        const std::size_t query = x / static_cast<std::size_t>(d) % 300;
        p.q[x] = round_to(c.dtype, 0.1 * p.q[x] + static_cast<double>(query) / 300);
      }
      for (std::size_t x = 0; x < p.k.size(); ++x) {
        const std::size_t key = x / static_cast<std::size_t>(d) % 900;
        p.k[x] =
            round_to(c.dtype, 0.1 * p.k[x] + 28.0 / std::sqrt(d) * static_cast<double>(key) / 128);
      }
      EXPECT_EQ(
          check_variant(c, variant, run_variant(engine(), kernel, c, variant), engine().is_cuda),
          "");
    }
  }
}

/// Gathered rows around a multiple of what is gathered at a time: padded slots have no say.
TEST(Pipeline, AnyNumberOfColumns) {
  const std::vector<double> columns = {0,   1,   7,   8,   63,  64,  65,  127,
                                       128, 129, 191, 192, 193, 255, 256, 257};
  for (const int d : kHeadDims) {
    const int heads = static_cast<int>(columns.size());
    const Case c{"first-columns", DType::kBF16, d, 1, heads, heads, 200, 700, Fill::kUneven, false};
    SCOPED_TRACE(c.text());
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    Variant variant = make_variant(c, kernel.tile, 15);
    variant.params[0].values = columns;
    variant.predictor->keep = [&](const oracle::TileFacts& t) {
      return t.tile.j < columns[static_cast<std::size_t>(t.tile.h)];
    };
    EXPECT_EQ(
        check_variant(c, variant, run_variant(engine(), kernel, c, variant), engine().is_cuda), "");
  }
}

/// A caller who asks for no report gets the same bits.
TEST(Pipeline, ReportsChangeNothing) {
  for (const std::string& name : all_names()) {
    const int d = test::by_tier(128, 64), n = test::by_tier(700, 400);
    const Case c{name, DType::kBF16, d, 1, 4, 2, n, n, Fill::kUneven, false};
    TestKernel kernel(engine(), c);
    ASSERT_EQ(kernel.error, "");
    const Variant variant = make_variant(c, kernel.tile, 5);
    const Reported reported = run_variant(engine(), kernel, c, variant);
    ASSERT_EQ(reported.error, "");
    Binding binding(engine().is_cuda, c, variant);
    ASSERT_EQ(binding.provide(kernel, c), "");
    binding.args.counts = binding.args.tile_mask = nullptr;
    ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
    const Reported silent = binding.collect();
    EXPECT_EQ(reported.o, silent.o) << name;
    EXPECT_EQ(reported.lse, silent.lse) << name;
  }
}

}  // namespace
}  // namespace lacuna::numerics
