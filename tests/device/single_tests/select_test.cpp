// select_rows: static patterns, and tiles estimated from the last rows of the sequence.
#include "tests/device/single/predict/select.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "templates/shared/estimate_block.cuh"
#include "templates/shared/select_block.cuh"
#include "tests/device/single/run_single.hpp"
#include "tests/device/single_tests/predict_reference.hpp"

namespace lacuna::device {
namespace {

class Select : public testing::TestWithParam<int> {
 protected:
  const PredictCase& config() const { return kSelectCases[GetParam()]; }

  std::string run(PredictProblem& problem, const emulation::Schedule& schedule) const {
    const SelectKernels& kernels = select_kernels()[static_cast<std::size_t>(GetParam())];
    const int heads = problem.args().attend.n_b * problem.args().attend.n_h;
    const int columns = token_share_columns(config().tile_k);
    const int shares = (problem.args().attend.n_k + columns - 1) / columns;
    const long long planes =
        1LL * last_row_planes(config().ranked || config().first) * heads * problem.columns();
    problem.reset(planes + 2LL * heads * shares * token_rows(config()));
    problem.args().predict.row_sums = problem.args().predict.scores + planes;
    const std::pair<const emulation::Kernel*, int> before[] = {
        {&kernels.sums, heads * shares},
        {&kernels.estimate, heads * shares},
        {&kernels.order_shares, heads * kOrderShares},
        {&kernels.order, heads * kOrderShares}};
    for (const auto& [kernel, blocks] : before) {
      if (kernel->run_thread == nullptr) continue;
      std::string fault = problem.run(*kernel, blocks, token_smem_bytes(config()), schedule);
      if (!fault.empty()) return "before select: " + fault;
    }
    return problem.run(kernels.select, problem.rows(), kSelectSmemBytes, schedule);
  }
};

TEST_P(Select, AgreesWithTheDefinition) {
  const PredictShape shapes[] = {{1, 1, 1, 1, 1},     {2, 4, 2, 63, 129}, {1, 2, 1, 129, 63},
                                 {1, 2, 2, 300, 300}, {1, 1, 1, 70, 600}, {1, 1, 1, 500, 65}};
  for (const PredictShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.n_q << " x " << shape.n_k);
    PredictProblem problem(config(), shape, PredictFill::kNormal, 1);
    ASSERT_EQ(run(problem, kPlainSchedule), "");
    EXPECT_EQ(problem.check(), "");
  }
}

TEST_P(Select, BreaksTiesByIndex) {
  PredictProblem problem(config(), {1, 2, 1, 200, 400}, PredictFill::kTies, 2);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Select, KeepsSomethingAndNotEverything) {
  PredictProblem problem(config(), {1, 2, 1, 300, 900}, PredictFill::kSharp, 4);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
  EXPECT_GT(problem.kept_count(), 0);
  EXPECT_LT(problem.kept_count(), problem.rows() * problem.columns());
}

TEST_P(Select, GivesTheSameBitsUnderAnySchedule) {
  PredictProblem problem(config(), {1, 2, 1, 150, 400}, PredictFill::kNormal, 5);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  const std::vector<unsigned> plain = problem.kept();
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    ASSERT_EQ(run(problem, schedule), "");
    EXPECT_EQ(problem.kept(), plain);
    EXPECT_EQ(problem.check(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Single, Select, testing::Range(0, int{std::size(kSelectCases)}),
                         [](const auto& info) {
                           return std::string(kSelectCases[info.param].name);
                         });

}  // namespace
}  // namespace lacuna::device
