// Keys that hold NaN and infinity where a row does not look: what the kernels of both families
// promise. In V, where the row's tiles do not visit the key; in K, where no row sees it that shares
// a reference or a decision with this one.
#include "tests/numerics/harness/unseen.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/device/runner.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

using numerics::compare_unseen;
using numerics::Poison;
using numerics::Promise;
using numerics::Reported;

const emulation::Schedule kPlainSchedule = {emulation::Landing::kEarly,
                                            emulation::WarpOrder::kAscending, 0};
constexpr int kRowsOfABlock = 128;
const int kBlocks = test::by_tier(2, 1);

/// One of each kind is enough. A token order has no place of its own for a key.
std::vector<Subject> asked_subjects() {
  std::vector<Subject> asked;
  std::ranges::copy_if(subjects(), std::back_inserter(asked), [](const Subject& subject) {
    return subject.head_dim == 64 && !subject.contract.takes_order;
  });
  return asked;
}

/// Some rows more than one block has, or two blocks.
Problem problem_of(const Subject& subject, std::uint32_t seed, int blocks) {
  numerics::Case shape;
  shape.n_b = 1, shape.n_h = 1, shape.n_h_kv = 1;
  shape.n_q = blocks * kRowsOfABlock + 14, shape.n_k = shape.n_q + 20;
  return make_problem(subject, shape, seed);
}

/// Rows for which values are loaded together: of columns that a block of wgmma gathers for two work
/// tiles, those of both.
int rows_of_values(const Subject& subject, const oracle::Tiling& tiling) {
  constexpr int kMostColumn = 16;
  const bool of_two = subject.name.ends_with("sm_90a") && tiling.tile_q == kRowsOfABlock / 2 &&
                      tiling.tile_k <= kMostColumn;
  return of_two ? kRowsOfABlock : 1;
}

/// How many rows did not see the tokens, in K and in V as far as asked for, and did not notice.
int expect_unnoticed(const Subject& subject, const Problem& problem, const std::vector<int>& tokens,
                     std::initializer_list<bool> in_v) {
  const auto run_on = [&](const numerics::Variant& variant) {
    return run(subject, Problem{problem.shape, variant}, kPlainSchedule);
  };
  const numerics::Variant clean = cleared(problem.variant, tokens);
  const Reported of_clean = run_on(clean);
  int rows = 0;
  for (const bool is_v : in_v) {
    const Poison poison{is_v, tokens};
    const Promise promise = {is_v ? rows_of_values(subject, problem.variant.tiling) : kRowsOfABlock,
                             is_v};
    const auto result =
        compare_unseen(clean, poison, promise, of_clean, run_on(poisoned(clean, poison)));
    EXPECT_EQ(result.difference, "") << subject.name << (is_v ? ", V" : ", K");
    rows += result.rows;
  }
  return rows;
}

TEST(Unseen, KeysMayHoldAnything) {
  int rows = 0;
  for (const Subject& subject : asked_subjects()) {
    const Problem problem = problem_of(subject, 41, kBlocks);
    const int end = problem.shape.n_k;  // of causal masks the last rows alone see these keys
    rows +=
        expect_unnoticed(subject, problem, {end - 14, end - 10, end - 6, end - 2}, {false, true});
  }
  EXPECT_GT(rows, 5'000 * kBlocks);
}

/// Also not where a block has two work tiles at once, of which one visits the tile.
TEST(Unseen, ATileThatOnlyTheNeighbourVisitsMayHoldAnything) {
  int rows = 0;
  for (const Subject& subject : asked_subjects()) {
    const Problem problem = problem_of(subject, 43, 2);
    const oracle::Tiling& tiling = problem.variant.tiling;
    if (tiling.listed.empty() || tiling.tile_q != 64) continue;
    for (int tile = 0; tile < 3; ++tile) {
      std::vector<int> tokens(static_cast<std::size_t>(tiling.tile_k));
      std::iota(tokens.begin(), tokens.end(), tile * tiling.tile_k);
      rows += expect_unnoticed(subject, problem, tokens, {true});
    }
  }
  EXPECT_GT(rows, 500);
}

TEST(Unseen, NothingBehindTheLastKeyIsRead) {
  for (const Subject& subject : asked_subjects()) {
    SCOPED_TRACE(subject.name);
    const Problem problem = problem_of(subject, 42, kBlocks);
    const Reported clean = run(subject, problem, kPlainSchedule);
    ASSERT_EQ(clean.error, "");
    numerics::Binding longer(false, problem.shape, problem.variant);
    poison_behind_the_last_key(longer, problem.shape, problem.variant);
    const Reported got = run(subject, longer, kPlainSchedule);
    EXPECT_EQ(got.error, "");
    EXPECT_TRUE(got.o == clean.o && got.lse == clean.lse && got.tile_mask == clean.tile_mask);
  }
}

}  // namespace
}  // namespace lacuna::device
