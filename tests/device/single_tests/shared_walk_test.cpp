// pipeline/two_list_walk.cuh on an emulated warp, against sets.
#include "tests/device/single/attend/shared_walk.hpp"

#include <algorithm>
#include <map>

#include "tests/device/single/run_single.hpp"

namespace lacuna::device {
namespace {

using single::SharedTileFacts;
using single::SharedWalkShape;
using single::SharedWalkVariant;

constexpr int kWalkRows = 5;  ///< of a head: the last is alone
constexpr int kHeads = 2;
constexpr unsigned kNeedsMask = 1u << 31;

/// What a kernel of single/attend/shared_walk.cpp reads.
struct WalkArgs {
  AttendArgs attend{};
  single::SharedSteps steps{};
};

struct Lists {
  int n_k, k_tiles;
  std::vector<int> indices, counts;

  Lists(int n_k_, const std::vector<double>& densities, std::mt19937& random)
      : n_k(n_k_), k_tiles((n_k_ + single::kSharedTileKeys - 1) / single::kSharedTileKeys) {
    for (int row = 0; row < kHeads * kWalkRows; ++row) {
      std::bernoulli_distribution lists(
          densities[static_cast<std::size_t>(row) % densities.size()]);
      std::bernoulli_distribution masks(0.2);
      int count = 0;
      indices.resize(static_cast<std::size_t>((row + 1) * k_tiles), -77);
      for (int j = 0; j < k_tiles; ++j) {
        if (!lists(random)) continue;
        const unsigned entry = static_cast<unsigned>(j) | (masks(random) ? kNeedsMask : 0u);
        indices[static_cast<std::size_t>(row * k_tiles + count++)] = static_cast<int>(entry);
      }
      counts.push_back(count);
    }
  }

  /// The row's tiles, and which need the mask.
  std::map<int, bool> row(int number) const {
    std::map<int, bool> tiles;
    for (int n = 0; n < counts[static_cast<std::size_t>(number)]; ++n) {
      const auto entry =
          static_cast<unsigned>(indices[static_cast<std::size_t>(number * k_tiles + n)]);
      const int index = static_cast<int>(entry & ~kNeedsMask);
      const bool is_tail = n_k % single::kSharedTileKeys != 0 && index == k_tiles - 1;
      tiles[index] = (entry & kNeedsMask) != 0 || is_tail;
    }
    return tiles;
  }
};

struct Walked {
  std::vector<std::vector<SharedTileFacts>> steps;
  std::string fault;
};

Walked walk(const SharedWalkVariant& variant, const Lists& lists, int head, int first) {
  const auto places = static_cast<std::size_t>(variant.shape.step_tiles);
  const auto most = static_cast<std::size_t>(2 * lists.k_tiles + 8);
  std::vector<unsigned> tiles(most * places, 0);
  int count = -1;
  WalkArgs args;
  AttendArgs& a = args.attend;
  a.n_b = 1, a.n_h = kHeads, a.q_tiles = kWalkRows, a.n_q = 64 * kWalkRows - 3;
  a.n_k = lists.n_k, a.k_tiles = a.list_capacity = lists.k_tiles;
  a.list_indices = lists.indices.data(), a.list_counts = lists.counts.data();
  args.steps = {tiles.data(), &count, static_cast<int>(most), head, first};
  Walked walked;
  walked.fault = emulation::run_block({variant.walk, &args, 0, 32, 0, 1}, kPlainSchedule);
  for (int n = 0; n < count; ++n) {
    std::vector<SharedTileFacts>& step = walked.steps.emplace_back();
    for (std::size_t place = 0; place < places; ++place) {
      const SharedTileFacts tile =
          single::facts_of(tiles[static_cast<std::size_t>(n) * places + place]);
      if (tile.listed != 0) step.push_back(tile);
    }
  }
  return walked;
}

/// Each tile of each row once, with its mask, and no other.
void check_tiles(const Walked& walked, const Lists& lists, int head, int first) {
  for (int r = 0; r < 2; ++r) {
    std::map<int, bool> got;
    for (const auto& step : walked.steps) {
      for (const SharedTileFacts& tile : step) {
        if ((tile.listed >> r & 1) == 0) continue;
        EXPECT_TRUE(got.emplace(tile.index, (tile.masked >> r & 1) != 0).second) << tile.index;
      }
    }
    const bool exists = first + r < kWalkRows;
    const auto expected = exists ? lists.row(head * kWalkRows + first + r) : std::map<int, bool>{};
    EXPECT_EQ(got, expected) << "row " << first + r << " of head " << head;
  }
  std::map<int, int> loads;
  for (const auto& step : walked.steps)
    for (const SharedTileFacts& tile : step) EXPECT_EQ(++loads[tile.index], 1) << tile.index;
}

/// Without a gate the tiles of a step are of the same rows; with one they come in order. No more
/// steps are short than there are kinds.
void check_steps(const SharedWalkShape& shape, const Walked& walked) {
  int previous = shape.descending ? 1 << 30 : -1;
  int short_steps = 0;
  for (const auto& step : walked.steps) {
    ASSERT_FALSE(step.empty());
    if (std::ssize(step) < shape.step_tiles) ++short_steps;
    for (const SharedTileFacts& tile : step) {
      if (!shape.has_gate) {
        EXPECT_EQ(tile.listed, step.front().listed);
        continue;
      }
      EXPECT_TRUE(shape.descending ? tile.index < previous : tile.index > previous);
      previous = tile.index;
    }
  }
  EXPECT_LE(short_steps, shape.has_gate ? 1 : 3);
}

class SharedWalk : public testing::TestWithParam<SharedWalkVariant> {};

TEST_P(SharedWalk, TakesTheUnionOfTwoLists) {
  std::mt19937 random(91);
  for (const int n_k : {1, 32, 33, 1000, 1024, 1025, 5000, 9999}) {
    for (const std::vector<double>& densities :
         {std::vector{0.5}, {0.0, 0.5, 1.0}, {0.02}, {1.0}, {0.0}, {0.9, 0.1}, {0.0, 0.0, 0.3}}) {
      const Lists lists(n_k, densities, random);
      for (int head = 0; head < kHeads; ++head) {
        for (int first = 0; first < kWalkRows; first += 2) {
          SCOPED_TRACE("n_k " + std::to_string(n_k) + ", head " + std::to_string(head) + ", row " +
                       std::to_string(first));
          const Walked walked = walk(GetParam(), lists, head, first);
          ASSERT_EQ(walked.fault, "");
          check_tiles(walked, lists, head, first);
          check_steps(GetParam().shape, walked);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, SharedWalk, testing::ValuesIn(single::shared_walk_variants()),
                         [](const auto& info) {
                           const SharedWalkShape& s = info.param.shape;
                           return std::to_string(s.step_tiles) + (s.has_gate ? "_gate" : "") +
                                  (s.descending ? "_descending" : "");
                         });

}  // namespace
}  // namespace lacuna::device
