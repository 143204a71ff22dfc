// predict_token_pairs keeps, to the bit, what predict_tokens keeps.
#include "tests/device/single/predict/token_pairs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "tests/device/single/run_single.hpp"
#include "tests/device/single_tests/predict_reference.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

constexpr int kMostBlocks = 512, kThreads = 640, kRows = 256;

class Pairs : public testing::TestWithParam<int> {
 protected:
  const PredictCase& config() const { return kPairCases[GetParam()]; }
  const TokenPairKernels& kernels() const {
    return token_pair_kernels()[static_cast<std::size_t>(GetParam())];
  }

  std::vector<unsigned> expected(PredictProblem& problem) const {
    problem.reset(0);
    EXPECT_EQ(problem.run(kernels().tokens, std::min(problem.rows(), kMostBlocks),
                          token_smem_bytes(config()), kPlainSchedule),
              "");
    return problem.kept();
  }
  std::vector<unsigned> kept(PredictProblem& problem, const emulation::Schedule& schedule) const {
    const AttendArgs& attend = problem.args().attend;
    const int heads = attend.n_b * attend.n_h;
    problem.reset(static_cast<long long>(heads) * problem.args().predict.q_padded);
    if (config().normalise == Normalise::kLse) {
      EXPECT_EQ(
          problem.run(kernels().reference, problem.rows(), token_smem_bytes(config()), schedule),
          "");
    }
    EXPECT_EQ(problem.run(kernels().pairs, heads * ((attend.n_q + kRows - 1) / kRows),
                          token_pair_smem_bytes(config()), schedule, kThreads),
              "");
    return problem.kept();
  }
  void compare(PredictProblem& problem,
               std::initializer_list<float> taus = {0.001F, 0.02F, 0.3F, 1.0F, 7.0F, 1e3F}) const {
    for (const float tau : taus) {
      problem.args().tau = tau;
      const std::vector<unsigned> all = expected(problem);
      EXPECT_EQ(kept(problem, kPlainSchedule), all) << "tau " << tau;
    }
  }
  /// Thresholds at weights that occur leave no room for a bound that is wrong.
  void compare_at_weights(PredictProblem& problem) const {
    expected(problem);
    std::vector<float> weights;
    for (const TileRecord& record : problem.records())
      if (record.calls > 0 && std::isfinite(record.p)) weights.push_back(record.p);
    std::ranges::sort(weights);
    for (std::size_t n = 0; n < weights.size(); n += weights.size() / 6 + 1)
      compare(problem, {weights[n], std::nextafterf(weights[n], 0)});
  }
};

TEST_P(Pairs, KeepWhatTokensKeep) {
  const PredictShape shapes[] = {{1, 1, 1, 1, 1},     {2, 4, 2, 63, 129},  {1, 2, 1, 129, 63},
                                 {1, 1, 1, 300, 300}, {1, 1, 1, 70, 1600}, {1, 2, 2, 600, 1100}};
  for (const PredictShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.n_q << " x " << shape.n_k);
    PredictProblem problem(config(), shape, PredictFill::kNormal, 1);
    compare(problem);
  }
}

TEST_P(Pairs, KeepWhatTokensKeepAtTheirWeights) {
  PredictProblem problem(config(), {1, 1, 1, test::by_tier(200, 140), test::by_tier(400, 260)},
                         PredictFill::kNormal, 2);
  compare_at_weights(problem);
}

/// Biases within a unit that are far apart say little of its largest weight at a first look.
TEST_P(Pairs, KeepWhatTokensKeepWhereBiasesDiffer) {
  PredictProblem problem(config(), {1, 1, 1, 70, test::by_tier(1600, 400)}, PredictFill::kNormal,
                         8);
  for (std::size_t n = 0; n < problem.column_bias().size(); ++n)
    problem.column_bias()[n] *= n / 64 % 2 == 0 ? 8.0F : 0.125F;
  compare_at_weights(problem);
}

TEST_P(Pairs, KeepWhatTokensKeepFarFromAnyThreshold) {
  PredictProblem problem(config(), {1, 2, 1, 100, 200}, PredictFill::kNormal, 9);
  using Limits = std::numeric_limits<float>;
  compare(problem, {0, -1, 1e-42F, Limits::max(), Limits::infinity(), Limits::quiet_NaN()});
}

TEST_P(Pairs, ComputeWhatBoundsDoNotTell) {
  PredictProblem problem(config(), {1, 2, 1, 100, 300}, PredictFill::kNormal, 3);
  for (std::size_t n = 0; n < problem.column_bias().size(); n += 37)
    problem.column_bias()[n] = n % 2 == 0 ? 3e6F : -3e6F;
  problem.column_bias()[5] = std::numeric_limits<float>::quiet_NaN();
  problem.column_bias()[70] = -std::numeric_limits<float>::infinity();
  problem.query_scales()[3] = 1e-30F;
  problem.query_scales()[4] = std::numeric_limits<float>::quiet_NaN();
  compare(problem);
}

TEST_P(Pairs, KeepANanInItsRow) {
  PredictProblem problem(config(), {1, 2, 1, 100, 200}, PredictFill::kNormal, 7);
  problem.poison_query(33);
  compare(problem);
}

TEST_P(Pairs, GiveTheSameBitsUnderAnySchedule) {
  PredictProblem problem(config(), {1, 2, 1, 300, 500}, PredictFill::kNormal, 5);
  const std::vector<unsigned> plain = kept(problem, kPlainSchedule);
  for (const emulation::Schedule& schedule : kOtherSchedules)
    EXPECT_EQ(kept(problem, schedule), plain);
}

/// Few tiles are asked about more than at their two bounds.
TEST_P(Pairs, ComputeFewTilesAgain) {
  PredictProblem problem(config(), {1, 1, 1, 256, 2048}, PredictFill::kNormal, 6);
  expected(problem);
  std::vector<float> weights;
  for (const TileRecord& record : problem.records())
    if (record.calls > 0) weights.push_back(record.p);
  std::ranges::nth_element(weights, weights.begin() + std::ssize(weights) / 2);
  problem.args().tau = weights[weights.size() / 2];
  kept(problem, kPlainSchedule);
  int visible = 0, again = 0;
  for (const TileRecord& record : problem.records())
    visible += record.calls > 0, again += record.calls > 2;
  EXPECT_LE(again, visible / 20 + 16) << visible;
}

INSTANTIATE_TEST_SUITE_P(Single, Pairs, testing::Range(0, int{std::size(kPairCases)}),
                         [](const auto& info) { return std::string(kPairCases[info.param].name); });

}  // namespace
}  // namespace lacuna::device
