// select/compact.cuh on emulated blocks, against plain loops.
#include "tests/device/single/predict/compact.hpp"

#include <algorithm>
#include <numeric>

#include "tests/device/single/run_single.hpp"

namespace lacuna::device {
namespace {

using single::CompactShape;
using single::CompactVariant;

int tile_count(int n, int tile) { return (n + tile - 1) / tile; }

struct Shape {
  int n_b, n_h, heads_per_kv, n_q, n_k;
  double density;  ///< of kept tiles
};

struct ListProblem {
  CompactShape config;
  Shape shape;
  std::vector<unsigned> kept;
  int capacity;
  Guarded<int> lists, counts;
  SingleArgs args;

  ListProblem(const CompactShape& c, const Shape& s, int capacity_ = -1)
      : config(c),
        shape(s),
        kept(static_cast<std::size_t>(s.n_b * s.n_h * keep_q_tiles() * keep_words())),
        capacity(capacity_ < 0 ? tile_count(s.n_k, c.tile_k) : capacity_),
        lists(static_cast<std::size_t>(rows() * capacity), -77),
        counts(static_cast<std::size_t>(rows()), -77) {
    std::mt19937 random(51);
    std::bernoulli_distribution keep(s.density);
    for (unsigned& word : kept)
      for (int bit = 0; bit < 32; ++bit) word |= unsigned{keep(random)} << bit;
    AttendArgs& a = args.attend;
    a.n_b = s.n_b, a.n_h = s.n_h, a.heads_per_kv = s.heads_per_kv, a.n_q = s.n_q, a.n_k = s.n_k;
    a.q_tiles = q_tiles(), a.k_tiles = tile_count(s.n_k, c.tile_k);
    a.list_indices = lists.data(), a.list_counts = counts.data(), a.list_capacity = capacity;
    args.predict.kept = kept.data();
    args.predict.keep_q_tiles = keep_q_tiles();
    args.predict.keep_k_tiles = tile_count(s.n_k, c.keep_k);
    args.predict.keep_words = keep_words();
  }

  int q_tiles() const { return tile_count(shape.n_q, config.tile_q); }
  int rows() const { return shape.n_b * shape.n_h * q_tiles(); }
  int keep_q_tiles() const { return tile_count(shape.n_q, config.keep_q); }
  int keep_words() const { return tile_count(tile_count(shape.n_k, config.keep_k), 32); }

  std::string run(const CompactVariant& variant, const emulation::Schedule& schedule) const {
    return run_single(variant.compact, args, (rows() + 7) / 8, 0, schedule);
  }

  bool is_kept(int b, int h, int i, int j) const {
    const int word = ((b * shape.n_h + h) * keep_q_tiles() + i) * keep_words() + j / 32;
    return (kept[static_cast<std::size_t>(word)] >> (j % 32) & 1) != 0;
  }
  bool is_kept_by_any(int b, int h, int i, int j) const {
    if (!config.shared_heads) return is_kept(b, h, i, j);
    const int first = h / shape.heads_per_kv * shape.heads_per_kv;
    for (int other = first; other < first + shape.heads_per_kv; ++other)
      if (is_kept(b, other, i, j)) return true;
    return false;
  }

  /// Pair by pair: is some pair of the tile visible, is every one, with all its keys there?
  std::vector<int> expected(int b, int h, int i) const {
    std::vector<int> list;
    for (int j = 0; j < args.attend.k_tiles; ++j) {
      const int keep_i = i * config.tile_q / config.keep_q,
                keep_j = j * config.tile_k / config.keep_k;
      if (!is_kept_by_any(b, h, keep_i, keep_j)) continue;
      bool some = false, all = (j + 1) * config.tile_k <= shape.n_k;
      for (int q = i * config.tile_q; q < std::min((i + 1) * config.tile_q, shape.n_q); ++q)
        for (int k = j * config.tile_k; k < std::min((j + 1) * config.tile_k, shape.n_k); ++k) {
          const bool visible = !config.has_mask || k <= q + shape.n_k - shape.n_q;
          some = some || visible, all = all && visible;
        }
      if (some) list.push_back(static_cast<int>(static_cast<unsigned>(j) | (all ? 0 : 1U << 31)));
    }
    return list;
  }
};

class Compact : public testing::TestWithParam<CompactVariant> {};

TEST_P(Compact, ListsKeptAndVisibleTilesInOrder) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1, 1}, Shape{2, 4, 2, 129, 300, 0.4}, Shape{1, 4, 4, 300, 129, 0.6},
        Shape{1, 2, 2, 200, 5000, 0.3}, Shape{1, 2, 1, 300, 300, 0}}) {
    SCOPED_TRACE("n_k = " + std::to_string(shape.n_k));
    ListProblem problem(GetParam().shape, shape);
    ASSERT_EQ(problem.run(GetParam(), kPlainSchedule), "");
    for (int row = 0; row < problem.rows(); ++row) {
      const int i = row % problem.q_tiles(), head = row / problem.q_tiles();
      const std::vector<int> list = problem.expected(head / shape.n_h, head % shape.n_h, i);
      ASSERT_EQ(problem.counts[static_cast<std::size_t>(row)], std::ssize(list)) << "row " << row;
      for (std::size_t n = 0; n < list.size(); ++n)
        ASSERT_EQ(problem.lists[static_cast<std::size_t>(row * problem.capacity) + n], list[n])
            << "row " << row << ", " << n;
    }
    EXPECT_TRUE(problem.lists.is_margin_intact() && problem.counts.is_margin_intact());
  }
}

TEST_P(Compact, MakesTheSameListsUnderAnySchedule) {
  const Shape shape = {1, 2, 2, 200, 9000, 0.5};
  ListProblem plain(GetParam().shape, shape);
  ASSERT_EQ(plain.run(GetParam(), kPlainSchedule), "");
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    ListProblem other(GetParam().shape, shape);
    ASSERT_EQ(other.run(GetParam(), schedule), "");
    EXPECT_TRUE(plain.lists == other.lists && plain.counts == other.counts);
  }
}

TEST_P(Compact, StopsAtTheCapacityOfAList) {
  ListProblem problem(GetParam().shape, {1, 2, 1, 200, 1000, 1}, 3);
  ASSERT_EQ(problem.run(GetParam(), kPlainSchedule), "");
  for (int row = 0; row < problem.rows(); ++row) {
    EXPECT_EQ(problem.counts[static_cast<std::size_t>(row)], 3);
    for (int n = 0; n < 3; ++n)
      EXPECT_EQ(problem.lists[static_cast<std::size_t>(row * 3 + n)] & ~(1 << 31), n);
  }
  EXPECT_TRUE(problem.lists.is_margin_intact());
}

INSTANTIATE_TEST_SUITE_P(Variants, Compact, testing::ValuesIn(single::compact_variants()),
                         [](const auto& info) {
                           const CompactShape& c = info.param.shape;
                           return std::to_string(c.keep_q) + "x" + std::to_string(c.keep_k) + "_" +
                                  std::to_string(c.tile_q) + "x" + std::to_string(c.tile_k);
                         });

TEST(OrderRows, LongestListFirstAndTiesByIndex) {
  constexpr int kSmemBytes = 33856;
  for (const auto& [rows, longest] :
       {std::pair(1, 3), {255, 5}, {256, 200}, {257, 0}, {1000, 9}, {700, 4095}, {700, 5000}}) {
    std::mt19937 random(61);
    std::uniform_int_distribution<int> length(0, longest);
    std::vector<int> counts(static_cast<std::size_t>(rows));
    for (int& count : counts) count = length(random);
    Guarded<int> order(counts.size(), -77);
    SingleArgs args;
    args.attend.n_b = 1, args.attend.n_h = 1, args.attend.q_tiles = rows;
    args.attend.list_counts = counts.data();
    args.attend.list_capacity = longest;
    args.predict.row_order = order.data();
    ASSERT_EQ(run_single(single::order_rows_kernel(1), args, (rows + 255) / 256, kSmemBytes), "");
    std::vector<int> expected(counts.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::stable_sort(expected, std::greater(),
                             [&](int row) { return counts[static_cast<std::size_t>(row)]; });
    for (std::size_t n = 0; n < expected.size(); ++n)
      ASSERT_EQ(order[n], expected[n]) << "place " << n << " of " << rows;
    EXPECT_TRUE(order.is_margin_intact());
  }
}

/// Two rows of a head together, by the mean of their lists; a last one alone counts half.
TEST(OrderRows, PairsOfRowsLongestFirst) {
  constexpr int kSmemBytes = 33856, kHeads = 3;
  for (const auto& [rows_of_head, longest] :
       {std::pair(1, 3), {2, 5}, {171, 40}, {300, 900}, {301, 5000}}) {
    std::mt19937 random(62);
    std::uniform_int_distribution<int> length(0, longest);
    std::vector<int> counts(static_cast<std::size_t>(kHeads * rows_of_head));
    for (int& count : counts) count = length(random);
    const int pairs = (rows_of_head + 1) / 2;
    std::vector<int> means;
    for (int head = 0; head < kHeads; ++head) {
      for (int i = 0; i < rows_of_head; i += 2) {
        const auto first = static_cast<std::size_t>(head * rows_of_head + i);
        means.push_back((counts[first] + (i + 1 < rows_of_head ? counts[first + 1] : 0) + 1) / 2);
      }
    }
    Guarded<int> order(means.size(), -77);
    SingleArgs args;
    args.attend.n_b = 1, args.attend.n_h = kHeads, args.attend.q_tiles = rows_of_head;
    args.attend.list_counts = counts.data();
    args.attend.list_capacity = longest;
    args.predict.row_order = order.data();
    const int blocks = (kHeads * pairs + 255) / 256;
    ASSERT_EQ(run_single(single::order_rows_kernel(2), args, blocks, kSmemBytes), "");
    std::vector<int> expected(means.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::stable_sort(expected, std::greater(),
                             [&](int pair) { return means[static_cast<std::size_t>(pair)]; });
    for (std::size_t n = 0; n < expected.size(); ++n)
      ASSERT_EQ(order[n], expected[n]) << "place " << n << " of " << pairs;
    EXPECT_TRUE(order.is_margin_intact());
  }
}

}  // namespace
}  // namespace lacuna::device
