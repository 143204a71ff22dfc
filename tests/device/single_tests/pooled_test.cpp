// predict_pooled: what it gives `keep`, what it keeps, and the same bits under any schedule.
#include "tests/device/single/predict/pooled.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tests/device/single/run_single.hpp"
#include "tests/device/single_tests/predict_reference.hpp"

namespace lacuna::device {
namespace {

constexpr int kMostPooledBlocks = 512;

class Pooled : public testing::TestWithParam<int> {
 protected:
  const PredictCase& config() const { return kPooledCases[GetParam()]; }

  int blocks(const PredictShape& shape) const {
    const int rows = pooled_rows(config());
    const int q_tiles = (shape.n_q + config().tile_q - 1) / config().tile_q;
    return std::min(shape.n_b * shape.n_h * ((q_tiles + rows - 1) / rows), kMostPooledBlocks);
  }
  std::string run(PredictProblem& problem, const PredictShape& shape,
                  const emulation::Schedule& schedule) const {
    const int rows = pooled_rows(config());
    problem.reset(static_cast<long long>(blocks(shape)) * (2 * rows + (config().ranked ? 2 : 0)) *
                  problem.columns());
    return problem.run(pooled_kernels()[static_cast<std::size_t>(GetParam())], blocks(shape),
                       kPooledSmemBytes, schedule);
  }
};

TEST_P(Pooled, AgreesWithTheDefinition) {
  const PredictShape shapes[] = {{1, 1, 1, 1, 1},     {2, 4, 2, 63, 129},  {1, 2, 1, 129, 63},
                                 {1, 2, 2, 300, 300}, {1, 1, 1, 70, 1100}, {1, 1, 1, 1000, 65}};
  for (const PredictShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.n_q << " x " << shape.n_k);
    PredictProblem problem(config(), shape, PredictFill::kNormal, 1);
    ASSERT_EQ(run(problem, shape, kPlainSchedule), "");
    EXPECT_EQ(problem.check(), "");
  }
}

TEST_P(Pooled, BreaksTiesByIndex) {
  const PredictShape shape = {1, 2, 1, 200, 400};
  PredictProblem problem(config(), shape, PredictFill::kTies, 2);
  ASSERT_EQ(run(problem, shape, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Pooled, KeepsOnlySimilarTilesWhenAllAreExcluded) {
  const PredictShape shape = {1, 2, 1, 200, 200};
  PredictProblem problem(config(), shape, PredictFill::kNormal, 3);
  problem.args().theta = 2;
  ASSERT_EQ(run(problem, shape, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Pooled, KeepsSomethingAndNotEverything) {
  const PredictShape shape = {1, 2, 1, 300, 900};
  PredictProblem problem(config(), shape, PredictFill::kSharp, 4);
  problem.args().theta = 0.1F;
  ASSERT_EQ(run(problem, shape, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
  EXPECT_GT(problem.kept_count(), 0);
  EXPECT_LT(problem.kept_count(), problem.rows() * problem.columns());
}

TEST_P(Pooled, GivesTheSameBitsUnderAnySchedule) {
  const PredictShape shape = {1, 2, 1, 150, 700};
  PredictProblem problem(config(), shape, PredictFill::kNormal, 5);
  ASSERT_EQ(run(problem, shape, kPlainSchedule), "");
  const std::vector<unsigned> plain = problem.kept();
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    ASSERT_EQ(run(problem, shape, schedule), "");
    EXPECT_EQ(problem.kept(), plain);
    EXPECT_EQ(problem.check(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Single, Pooled, testing::Range(0, int{std::size(kPooledCases)}),
                         [](const auto& info) {
                           return std::string(kPooledCases[info.param].name);
                         });

std::size_t number_of(std::string_view name) {
  const auto found = std::ranges::find(kPooledCases, name, &PredictCase::name);
  return static_cast<std::size_t>(found - kPooledCases);
}

/// No tile has a larger p than one whose p is NaN: such a row is kept rather than lost.
TEST(PooledRows, ANanRanksFirst) {
  const std::size_t number = number_of("full");
  PredictProblem problem(kPooledCases[number], {1, 1, 1, 16, 300}, PredictFill::kNormal, 8);
  problem.blow_up_summary();
  problem.args().top = 1;
  problem.reset(18LL * problem.columns());
  ASSERT_EQ(problem.run(pooled_kernels()[number], 1, kPooledSmemBytes, kPlainSchedule), "");
  EXPECT_EQ(problem.kept_count(), problem.columns());
  for (const TileRecord& record : problem.records()) {
    EXPECT_TRUE(std::isnan(record.p));
    EXPECT_EQ(record.rank, 0);
    EXPECT_EQ(record.mass_before, 0);
  }
}

/// More tiles than lie in shared memory, thousands of them equal.
TEST(PooledRows, LongOnesAreRankedLikeShortOnes) {
  const std::size_t number = number_of("eights");
  PredictProblem problem(kPooledCases[number], {1, 1, 1, 64, 40000}, PredictFill::kTies, 6);
  problem.reset(6LL * problem.columns());
  ASSERT_EQ(problem.run(pooled_kernels()[number], 1, kPooledSmemBytes, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST(PooledRows, LongOnesKeepTheirFirstTiles) {
  const std::size_t number = number_of("first");
  for (const PredictFill fill : {PredictFill::kNormal, PredictFill::kTies}) {
    PredictProblem problem(kPooledCases[number], {1, 1, 1, 64, 16 * 700 - 3}, fill, 9);
    problem.args().top = 133;
    problem.reset(16LL * problem.columns());
    ASSERT_EQ(problem.run(pooled_kernels()[number], 1, kPooledSmemBytes, kPlainSchedule), "");
    EXPECT_EQ(problem.check(), "");
  }
}

}  // namespace
}  // namespace lacuna::device
