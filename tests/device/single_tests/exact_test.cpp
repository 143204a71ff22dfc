// predict_exact_sums and predict_exact_largest: what they give `keep`, what is kept, and the same
// bits under any schedule.
#include "tests/device/single/predict/exact.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/device/single/run_single.hpp"
#include "tests/device/single_tests/predict_reference.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

constexpr int kExactThreads = 640, kExactRows = 256;

class Exact : public testing::TestWithParam<int> {
 protected:
  const PredictCase& config() const { return kExactCases[GetParam()]; }

  std::string run(PredictProblem& problem, const emulation::Schedule& schedule) const {
    const ExactKernels& kernels = exact_kernels()[static_cast<std::size_t>(GetParam())];
    const AttendArgs& attend = problem.args().attend;
    const int heads = attend.n_b * attend.n_h;
    const int blocks = heads * ((attend.n_q + kExactRows - 1) / kExactRows);
    problem.reset(static_cast<long long>(heads) * problem.args().predict.q_padded);
    if (kernels.sums.run_thread != nullptr) {
      std::string fault =
          problem.run(kernels.sums, blocks, exact_smem_bytes(config()), schedule, kExactThreads);
      if (!fault.empty()) return "sums: " + fault;
    }
    return problem.run(kernels.largest, blocks, exact_smem_bytes(config()), schedule,
                       kExactThreads);
  }
};

TEST_P(Exact, AgreesWithTheDefinition) {
  const PredictShape shapes[] = {{1, 1, 1, 1, 1},     {2, 4, 2, 63, 129}, {1, 2, 1, 129, 63},
                                 {1, 1, 1, 300, 300}, {1, 1, 1, 70, 600}, {1, 1, 1, 257, 130}};
  for (const PredictShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.n_q << " x " << shape.n_k);
    PredictProblem problem(config(), shape, PredictFill::kNormal, 1);
    ASSERT_EQ(run(problem, kPlainSchedule), "");
    EXPECT_EQ(problem.check(), "");
  }
}

TEST_P(Exact, FollowsRowsThatOutgrowTheirReference) {
  if (config().normalise != Normalise::kSoftmax) GTEST_SKIP() << "p may be larger than f32 holds";
  for (const float factor : {4.0F, -4.0F, 40.0F}) {
    SCOPED_TRACE(factor);
    PredictProblem problem(config(), {1, 1, 1, 100, test::by_tier(1300, 700)}, PredictFill::kSharp,
                           6);
    problem.args().attend.scale *= factor;
    ASSERT_EQ(run(problem, kPlainSchedule), "");
    EXPECT_EQ(problem.check(std::abs(factor) * 10), "");
  }
}

TEST_P(Exact, KeepANanInItsRow) {
  PredictProblem problem(config(), {1, 2, 1, 100, 200}, PredictFill::kNormal, 7);
  problem.poison_query(33);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
}

TEST_P(Exact, KeepsSomethingAndNotEverything) {
  PredictProblem problem(config(), {1, 2, 1, 300, 900}, PredictFill::kSharp, 4);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  EXPECT_EQ(problem.check(), "");
  EXPECT_GT(problem.kept_count(), 0);
  EXPECT_LT(problem.kept_count(), problem.rows() * problem.columns());
}

TEST_P(Exact, GivesTheSameBitsUnderAnySchedule) {
  PredictProblem problem(config(), {1, 2, 1, 300, 700}, PredictFill::kNormal, 5);
  ASSERT_EQ(run(problem, kPlainSchedule), "");
  const std::vector<unsigned> plain = problem.kept();
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    ASSERT_EQ(run(problem, schedule), "");
    EXPECT_EQ(problem.kept(), plain);
    EXPECT_EQ(problem.check(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Single, Exact, testing::Range(0, int{std::size(kExactCases)}),
                         [](const auto& info) {
                           return std::string(kExactCases[info.param].name);
                         });

}  // namespace
}  // namespace lacuna::device
