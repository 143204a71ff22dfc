// Keys that hold NaN and infinity where a row does not look: what the kernels of both families
// promise. In V, where the row's tiles do not visit the key; in K, where no row sees it that shares
// a reference or a decision with this one.
#include "tests/numerics/unseen.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/runner.hpp"

namespace lacuna::device {
namespace {

using numerics::compare_unseen;
using numerics::Poison;
using numerics::Promise;
using numerics::Reported;

const emulation::Schedule kPlain = {emulation::Landing::kEarly, emulation::WarpOrder::kAscending,
                                    0};
constexpr int kRowsOfABlock = 128;

/// One of each kind is enough. A token order has no place of its own for a key.
std::vector<Subject> asked_subjects() {
  std::vector<Subject> asked;
  std::ranges::copy_if(subjects(), std::back_inserter(asked), [](const Subject& subject) {
    return subject.head_dim == 64 && !subject.contract.takes_order;
  });
  return asked;
}

Problem problem_of(const Subject& subject, std::uint32_t seed) {
  numerics::Case shape;
  shape.n_b = 1, shape.n_h = 1, shape.n_h_kv = 1, shape.n_q = 270, shape.n_k = 290;
  return make_problem(subject, shape, seed);
}

/// How many rows did not see the tokens, and did not notice.
int expect_unnoticed(const Subject& subject, const Problem& problem, const Poison& poison) {
  const Promise promise = {poison.in_v ? 1 : kRowsOfABlock, poison.in_v};
  const auto run_on = [&](const numerics::Variant& variant) {
    return run(subject, Problem{problem.shape, variant}, kPlain);
  };
  const auto result =
      compare_unseen(problem.variant, poison, promise, run_on(cleared(problem.variant, poison)),
                     run_on(poisoned(problem.variant, poison)));
  EXPECT_EQ(result.difference, "") << subject.name << (poison.in_v ? ", V" : ", K");
  return result.rows;
}

TEST(Unseen, KeysMayHoldAnything) {
  int rows = 0;
  for (const Subject& subject : asked_subjects())
    for (const bool in_v : {false, true})
      rows += expect_unnoticed(subject, problem_of(subject, 41), {in_v, {276, 280, 284, 288}});
  EXPECT_GT(rows, 10'000);
}

/// Also not where a block has two rows of tiles at once, of which one visits the tile.
TEST(Unseen, ATileThatOnlyTheNeighbourVisitsMayHoldAnything) {
  int rows = 0;
  for (const Subject& subject : asked_subjects()) {
    const Problem problem = problem_of(subject, 43);
    if (problem.variant.tiling.listed.empty() || problem.variant.tiling.tile_q != 64) continue;
    for (int tile = 0; tile < 3; ++tile) {
      Poison poison{.in_v = true, .tokens = {}};
      for (int n = 0; n < problem.variant.tiling.tile_k; ++n)
        poison.tokens.push_back(tile * problem.variant.tiling.tile_k + n);
      rows += expect_unnoticed(subject, problem, poison);
    }
  }
  EXPECT_GT(rows, 500);
}

TEST(Unseen, NothingBehindTheLastKeyIsRead) {
  for (const Subject& subject : asked_subjects()) {
    SCOPED_TRACE(subject.name);
    const Problem problem = problem_of(subject, 42);
    const Reported clean = run(subject, problem, kPlain);
    ASSERT_EQ(clean.error, "");
    numerics::Binding longer(false, problem.shape, problem.variant);
    poison_behind_the_last_key(longer, problem.shape, problem.variant);
    const Reported got = run(subject, longer, kPlain);
    EXPECT_EQ(got.error, "");
    EXPECT_TRUE(got.o == clean.o && got.lse == clean.lse && got.tile_mask == clean.tile_mask);
  }
}

}  // namespace
}  // namespace lacuna::device
