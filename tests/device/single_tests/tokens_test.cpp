// predict_tokens and predict_cells: what it gives `keep`, what it keeps, and the same bits under
// any schedule.
#include "tests/device/single/predict/tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/device/single/predict/token_cases.hpp"
#include "tests/device/single/run_single.hpp"
#include "tests/device/single_tests/predict_reference.hpp"

namespace lacuna::device {
namespace {

constexpr int kMostTokenBlocks = 512;

class Tokens : public testing::TestWithParam<int> {
 protected:
  const PredictCase& config() const { return kTokenCases[GetParam()]; }

  std::string run(PredictProblem& problem, const emulation::Schedule& schedule) const {
    const int blocks = std::min(problem.groups(token_tiles(config())), kMostTokenBlocks);
    problem.reset(static_cast<long long>(token_planes(config())) * blocks * problem.columns());
    return problem.run(token_kernels()[static_cast<std::size_t>(GetParam())], blocks,
                       token_smem_bytes(config()), schedule);
  }
};

TEST_P(Tokens, AgreesWithTheDefinition) {
  const PredictShape shapes[] = {{1, 1, 1, 1, 1},     {2, 4, 2, 63, 129}, {1, 2, 1, 129, 63},
                                 {1, 1, 1, 300, 300}, {1, 1, 1, 70, 600}, {1, 1, 1, 128, 256}};
  for (const PredictShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.n_q << " x " << shape.n_k);
    PredictProblem problem(config(), shape, PredictFill::kNormal, 1);
    ASSERT_EQ(run(problem, kPlainSchedule), "");
    EXPECT_EQ(problem.check(), "");
  }
}

TEST_P(Tokens, BreaksTiesByIndex) {
  PredictProblem problem(config(), {1, 2, 1, 100, 400}, PredictFill::kTies, 2);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Tokens, KeepsOnlySimilarTilesWhenAllAreExcluded) {
  PredictProblem problem(config(), {1, 2, 1, 200, 200}, PredictFill::kNormal, 3);
  problem.args().theta = 2;
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Tokens, KeepANanInItsRow) {
  PredictProblem problem(config(), {1, 2, 1, 100, 200}, PredictFill::kNormal, 7);
  problem.poison_query(33);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Tokens, KeepsSomethingAndNotEverything) {
  // Integers know nothing of the sharp tokens whose log-sum-exp may divide them.
  const PredictFill fill = config().bits == 16 ? PredictFill::kSharp : PredictFill::kNormal;
  PredictProblem problem(config(), {1, 2, 1, 300, 900}, fill, 4);
  problem.args().theta = 0.1F;
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
  EXPECT_GT(problem.kept_count(), 0);
  EXPECT_LT(problem.kept_count(), problem.rows() * problem.columns());
}

TEST_P(Tokens, GivesTheSameBitsUnderAnySchedule) {
  PredictProblem problem(config(), {1, 2, 1, 100, 300}, PredictFill::kNormal, 5);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  const std::vector<unsigned> plain = problem.kept();
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    ASSERT_EQ(run(problem, schedule), "");
    EXPECT_EQ(problem.kept(), plain);
    EXPECT_EQ(problem.check(), "");
  }
}

/// A block strides on, and the last heads are fewer than those that are at work together.
TEST(Cells, HasMoreGroupsOfCellsThanBlocks) {
  const auto pairs = std::ranges::find(kTokenCases, std::string_view("pairs"), &PredictCase::name);
  PredictProblem problem(*pairs, {1, 260, 2, 260, 5}, PredictFill::kNormal, 8);
  const int groups = problem.groups(token_tiles(*pairs));
  ASSERT_GT(groups, kMostTokenBlocks);
  problem.reset(static_cast<long long>(token_planes(*pairs)) * kMostTokenBlocks *
                problem.columns());
  const auto number = static_cast<std::size_t>(pairs - kTokenCases);
  ASSERT_EQ(problem.run(token_kernels()[number], kMostTokenBlocks, token_smem_bytes(*pairs),
                        kPlainSchedule),
            "");
  EXPECT_EQ(problem.check(), "");
}

INSTANTIATE_TEST_SUITE_P(Single, Tokens, testing::Range(0, int{std::size(kTokenCases)}),
                         [](const auto& info) {
                           return std::string(kTokenCases[info.param].name);
                         });

}  // namespace
}  // namespace lacuna::device
