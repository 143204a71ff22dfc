// Kernels that share the keys of one row: attend where work tiles are split, and estimates from the
// last queries of a head. The shapes that they are for, and those at which items have nothing to
// do. Beside attend_test.cpp, which runs them like all others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/device/runner.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

const emulation::Schedule kSplitPlain = {emulation::Landing::kEarly,
                                         emulation::WarpOrder::kAscending, 0};
const emulation::Schedule kSplitLate = {emulation::Landing::kLate, emulation::WarpOrder::kShuffled,
                                        3};

/// Those that launch a kernel of that name.
std::vector<Subject> subjects_with(const char* kernel) {
  std::vector<Subject> found;
  std::ranges::copy_if(subjects(), std::back_inserter(found), [&](const Subject& subject) {
    return std::ranges::count(subject.launch.launches, kernel, &KernelLaunch::name) == 1;
  });
  return found;
}
std::vector<Subject> split_subjects() { return subjects_with("combine"); }

numerics::Case shape_of(int n_h, int n_h_kv, int n_q, int n_k) {
  numerics::Case c;
  c.n_b = 2, c.n_h = n_h, c.n_h_kv = n_h_kv, c.n_q = n_q, c.n_k = n_k;
  return c;
}

void expect_agreement(const Subject& subject, const numerics::Case& shape,
                      const emulation::Schedule& schedule) {
  SCOPED_TRACE(subject.name);
  const Problem problem = make_problem(subject, shape, 31);
  const numerics::Reported got = run(subject, problem, schedule);
  EXPECT_EQ(check_variant(problem.shape, problem.variant, got, true), "") << problem.shape.text();
}

TEST(SplitKv, BothFamiliesAreTested) {
  for (const char* arch : {"sm_90a", "sm_100a"}) {
    EXPECT_GE(
        std::ranges::count_if(split_subjects(),
                              [&](const Subject& subject) { return subject.name.ends_with(arch); }),
        5)
        << arch;
  }
}

/// More than 32 tiles, which are classified at a time: shares begin within and behind them. One of
/// both in the short tier, the other for the next subject.
TEST(SplitKv, FewQueriesOfManyKeys) {
  const bool has_all = test::by_tier(true, false);
  bool turn = false;
  for (const Subject& subject : split_subjects()) {
    turn = !turn;
    if (has_all || turn)
      expect_agreement(subject, shape_of(2, 1, 1, test::by_tier(4500, 2300)), kSplitPlain);
    if (has_all || !turn) expect_agreement(subject, shape_of(1, 1, 3, 2177), kSplitLate);
  }
}

/// One tile, whoever has it; and more queries than keys, so that some see nothing.
TEST(SplitKv, MoreSharesThanTiles) {
  for (const Subject& subject : split_subjects()) {
    expect_agreement(subject, shape_of(2, 2, 5, 3), kSplitPlain);
    expect_agreement(subject, shape_of(2, 1, 200, 20), kSplitLate);
  }
}

/// Shares whose largest logits lie far apart, or are all the same.
TEST(SplitKv, ValuesOfAllKinds) {
  using numerics::Fill;
  constexpr Fill kFills[] = {Fill::kZero,      Fill::kHuge,    Fill::kNegative,
                             Fill::kIdentical, Fill::kOutlier, Fill::kTiny};
  // One of them in the short tier, another for the next subject.
  const std::size_t step = test::by_tier(std::size_t{1}, std::size(kFills));
  std::size_t first = 0;
  for (const Subject& subject : split_subjects()) {
    for (std::size_t n = first++ % step; n < std::size(kFills); n += step) {
      numerics::Case shape = shape_of(1, 1, 40, 700);
      shape.fill = kFills[n];
      expect_agreement(subject, shape, kSplitPlain);
    }
  }
}

/// Poisoned partial results would show: items without a tile have to leave 0 and -inf.
TEST(SplitKv, ARowWithoutATileIsZeroAndMinusInfinity) {
  for (const Subject& subject : split_subjects()) {
    Problem problem = make_problem(subject, shape_of(2, 1, 70, 300), 32);
    if (problem.variant.tiling.listed.empty()) continue;
    std::ranges::fill(problem.variant.tiling.listed, 0);
    const numerics::Reported got = run(subject, problem, kSplitPlain);
    ASSERT_EQ(got.error, "") << subject.name;
    EXPECT_TRUE(std::ranges::all_of(got.o, [](double x) { return x == 0; })) << subject.name;
    EXPECT_TRUE(std::ranges::all_of(got.lse, [](double x) { return std::isinf(x) && x < 0; }))
        << subject.name;
    EXPECT_EQ(std::ranges::count(got.tile_mask, 0), std::ssize(got.tile_mask)) << subject.name;
  }
}

/// Shares of 512 keys: several, and a last one of few.
TEST(LastRows, SharesOfKeysGiveOneEstimate) {
  EXPECT_GE(subjects_with("sums").size(), 2U);
  for (const Subject& subject : subjects_with("sums")) {
    expect_agreement(subject, shape_of(2, 1, 70, 1100), kSplitPlain);
    expect_agreement(subject, shape_of(1, 1, 130, 520), kSplitLate);
  }
}

}  // namespace
}  // namespace lacuna::device
