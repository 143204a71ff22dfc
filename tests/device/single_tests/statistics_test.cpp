// prepare/statistics.cuh on emulated blocks, against scalar arithmetic.
#include "tests/device/single/prepare/statistics.hpp"

#include <cmath>
#include <limits>

#include "tests/device/single/run_single.hpp"

namespace lacuna::device {
namespace {

using single::StatisticsVariant;

constexpr int kChunkTokens = 512;

struct StatisticsShape {
  int n_b, n_h, heads_per_kv, n;
  bool is_token_major;
};

/// A tensor and the statistics of it.
struct StatisticsProblem {
  const StatisticsVariant& variant;
  StatisticsShape shape;
  int heads, chunks;
  Tensor x;
  Guarded<float> partial, result;

  StatisticsProblem(const StatisticsVariant& v, const StatisticsShape& s)
      : variant(v),
        shape(s),
        heads(v.tensor == 0 ? s.n_h : s.n_h / s.heads_per_kv),
        chunks((s.n + kChunkTokens - 1) / kChunkTokens),
        x(random_tensor(s.n_b, heads, s.n, v.head_dim,
                        v.is_bf16 ? emulation::Format::kBF16 : emulation::Format::kF16,
                        s.is_token_major, 31)),
        partial(static_cast<std::size_t>(s.n_b * heads * chunks * v.head_dim)),
        result(static_cast<std::size_t>(s.n_b * heads * v.head_dim)) {
    // A channel of zeros in the first head.
    for (int token = 0; token < s.n; ++token) x.set(0, 0, token, 5, 0);
  }

  std::string run(const emulation::Schedule& schedule = kPlainSchedule) {
    SingleArgs args;
    args.attend.n_b = shape.n_b, args.attend.n_h = shape.n_h;
    args.attend.heads_per_kv = shape.heads_per_kv;
    args.attend.n_q = args.attend.n_k = shape.n;
    TensorArg* tensors[] = {&args.attend.q, &args.attend.k, &args.attend.v};
    float** results[] = {&args.predict.q_mean, &args.predict.k_mean, &args.predict.v_scale};
    *tensors[variant.tensor] = x.arg();
    *results[variant.tensor] = result.data();
    args.predict.partial = partial.data();
    const int all_heads = shape.n_b * heads;
    std::string fault = run_single(variant.partial, args, all_heads * chunks, 8192, schedule);
    return fault.empty() ? run_single(variant.finish, args, all_heads, 8192, schedule) : fault;
  }

  float got(int head, int column) const {
    return result[static_cast<std::size_t>(head * variant.head_dim + column)];
  }
};

class Statistics : public testing::TestWithParam<StatisticsVariant> {};

void check_mean(const StatisticsProblem& problem, int head, int column) {
  double sum = 0, magnitude = 0;
  for (int token = 0; token < problem.shape.n; ++token) {
    const double x = problem.x.at(head / problem.heads, head % problem.heads, token, column);
    sum += x, magnitude += std::abs(x);
  }
  EXPECT_NEAR(problem.got(head, column), sum / problem.shape.n, 1e-6 * magnitude / problem.shape.n);
}

void check_scale(const StatisticsProblem& problem, int head, int column) {
  float largest = 0;
  for (int token = 0; token < problem.shape.n; ++token)
    largest = std::max(
        largest, std::abs(problem.x.at(head / problem.heads, head % problem.heads, token, column)));
  EXPECT_EQ(problem.got(head, column), largest == 0 ? 1 : largest / problem.variant.range);
}

TEST_P(Statistics, AgreeWithScalarArithmetic) {
  for (const StatisticsShape& shape :
       {StatisticsShape{1, 2, 2, 1, false}, StatisticsShape{1, 4, 4, 63, true},
        StatisticsShape{2, 4, 2, 513, true}, StatisticsShape{1, 2, 1, 1300, false}}) {
    SCOPED_TRACE("n = " + std::to_string(shape.n));
    StatisticsProblem problem(GetParam(), shape);
    ASSERT_EQ(problem.run(), "");
    for (int head = 0; head < shape.n_b * problem.heads; ++head)
      for (int column = 0; column < GetParam().head_dim; ++column)
        (GetParam().tensor == 2 ? check_scale : check_mean)(problem, head, column);
    EXPECT_TRUE(problem.partial.is_margin_intact() && problem.result.is_margin_intact());
  }
}

TEST_P(Statistics, AreTheSameBitsUnderAnySchedule) {
  StatisticsProblem plain(GetParam(), {1, 2, 2, 1300, false});
  ASSERT_EQ(plain.run(), "");
  for (const emulation::Schedule& schedule : kOtherSchedules) {
    StatisticsProblem other(GetParam(), {1, 2, 2, 1300, false});
    ASSERT_EQ(other.run(schedule), "");
    EXPECT_TRUE(plain.result == other.result);
  }
}

TEST_P(Statistics, CountWhatIsNotFiniteAsZero) {
  using Limits = std::numeric_limits<float>;
  StatisticsProblem plain(GetParam(), {1, 1, 1, 700, false});
  StatisticsProblem other(GetParam(), {1, 1, 1, 700, false});
  const float values[] = {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()};
  for (int column = 0; column < GetParam().head_dim; column += 2) {
    other.x.set(0, 0, 600, column, values[column / 2 % 3]);
    plain.x.set(0, 0, 600, column, 0);
  }
  ASSERT_EQ(plain.run(), "");
  ASSERT_EQ(other.run(), "");
  EXPECT_TRUE(plain.result == other.result);
}

INSTANTIATE_TEST_SUITE_P(Variants, Statistics, testing::ValuesIn(single::statistics_variants()),
                         [](const auto& info) {
                           return std::string(1, "qkv"[info.param.tensor]) + "_d" +
                                  std::to_string(info.param.head_dim) +
                                  (info.param.is_bf16 ? "_bf16" : "_f16");
                         });

}  // namespace
}  // namespace lacuna::device
