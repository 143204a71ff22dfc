// prepare/permute.cuh on emulated blocks.
#include "tests/device/single/prepare/permute.hpp"

#include <algorithm>
#include <numeric>

#include "tests/device/single/run_single.hpp"

namespace lacuna::device {
namespace {

using single::PermuteVariant;

constexpr auto kFormat = emulation::Format::kBF16;

std::vector<int> random_order(int n) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(41));
  return order;
}

/// Caller's tensors token-major with gaps, attend's head-major.
struct TokenProblem {
  static constexpr int kBatch = 2, kHeads = 4, kHeadsPerKv = 2;
  int n, d;
  std::vector<int> order;
  Tensor caller_q, caller_k, caller_v, caller_o, q, k, v, o;
  Guarded<float> caller_lse, lse;
  SingleArgs args;

  TokenProblem(int n_, int d_)
      : n(n_),
        d(d_),
        order(random_order(n)),
        caller_q(random_tensor(kBatch, kHeads, n, d, kFormat, true, 42)),
        caller_k(random_tensor(kBatch, kHeads / kHeadsPerKv, n, d, kFormat, true, 43)),
        caller_v(random_tensor(kBatch, kHeads / kHeadsPerKv, n, d, kFormat, true, 44)),
        caller_o(kBatch, kHeads, n, d, kFormat, true),
        q(kBatch, kHeads, n, d, kFormat, false),
        k(kBatch, kHeads / kHeadsPerKv, n, d, kFormat, false),
        v(kBatch, kHeads / kHeadsPerKv, n, d, kFormat, false),
        o(random_tensor(kBatch, kHeads, n, d, kFormat, false, 45)),
        caller_lse(static_cast<std::size_t>(kBatch * kHeads * n)),
        lse(static_cast<std::size_t>(kBatch * kHeads * n)) {
    for (std::size_t row = 0; row < lse.size(); ++row) lse[row] = static_cast<float>(row);
    AttendArgs& a = args.attend;
    a.n_b = kBatch, a.n_h = kHeads, a.heads_per_kv = kHeadsPerKv, a.n_q = a.n_k = n;
    a.q = q.arg(), a.k = k.arg(), a.v = v.arg(), a.o = o.arg();
    a.lse = {lse.data(), kHeads * n, n};
    PredictArgs& p = args.predict;
    p.caller_q = caller_q.arg(), p.caller_k = caller_k.arg();
    p.caller_v = caller_v.arg(), p.caller_o = caller_o.arg();
    p.caller_lse = {caller_lse.data(), kHeads * n, n};
    p.order = order.data();
  }

  std::string run(const emulation::Kernel& kernel, int heads) const {
    return run_single(kernel, args, kBatch * heads * ((n + 63) / 64), 0);
  }
};

/// a[n] is b[order[n]] in every row.
void expect_ordered(const TokenProblem& problem, const Tensor& a, const Tensor& b, int heads) {
  for (int head = 0; head < TokenProblem::kBatch * heads; ++head)
    for (int token = 0; token < problem.n; ++token) {
      const int other = problem.order[static_cast<std::size_t>(token)];
      for (int column = 0; column < problem.d; ++column)
        ASSERT_EQ(a.element(head / heads, head % heads, token, column),
                  b.element(head / heads, head % heads, other, column))
            << "head " << head << ", token " << token << ", column " << column;
    }
}

class Permute : public testing::TestWithParam<PermuteVariant> {};

TEST_P(Permute, GathersTokensOfQueriesKeysAndValues) {
  for (const int n : {1, 63, 129}) {
    TokenProblem problem(n, GetParam().head_dim);
    const int heads_kv = TokenProblem::kHeads / TokenProblem::kHeadsPerKv;
    ASSERT_EQ(problem.run(GetParam().permute_q, TokenProblem::kHeads), "");
    ASSERT_EQ(problem.run(GetParam().permute_k, heads_kv), "");
    ASSERT_EQ(problem.run(GetParam().permute_v, heads_kv), "");
    expect_ordered(problem, problem.q, problem.caller_q, TokenProblem::kHeads);
    expect_ordered(problem, problem.k, problem.caller_k, heads_kv);
    expect_ordered(problem, problem.v, problem.caller_v, heads_kv);
  }
}

TEST_P(Permute, ScattersResults) {
  for (const int n : {1, 65, 200}) {
    TokenProblem problem(n, GetParam().head_dim);
    ASSERT_EQ(problem.run(GetParam().unpermute, TokenProblem::kHeads), "");
    expect_ordered(problem, problem.o, problem.caller_o, TokenProblem::kHeads);
    for (std::size_t row = 0; row < problem.lse.size(); ++row) {
      const auto length = static_cast<std::size_t>(n);
      const auto other = static_cast<std::size_t>(problem.order[row % length]);
      ASSERT_EQ(problem.lse[row], problem.caller_lse[row - row % length + other]);
    }
    EXPECT_TRUE(problem.caller_lse.is_margin_intact());
  }
}

TEST_P(Permute, LeavesAnLseAloneThatNobodyWants) {
  TokenProblem problem(65, GetParam().head_dim);
  ASSERT_EQ(problem.run(GetParam().unpermute_o, TokenProblem::kHeads), "");
  EXPECT_EQ(problem.caller_lse[0], 77);
  problem.args.predict.caller_lse.data = nullptr;
  EXPECT_EQ(problem.run(GetParam().unpermute, TokenProblem::kHeads), "");
  expect_ordered(problem, problem.o, problem.caller_o, TokenProblem::kHeads);
}

TEST_P(Permute, TakesTheNearestTokenForAnIndexOutside) {
  TokenProblem problem(65, GetParam().head_dim);
  problem.order[3] = -5;
  problem.order[7] = 1 << 30;
  ASSERT_EQ(problem.run(GetParam().permute_q, TokenProblem::kHeads), "");
  problem.order[3] = 0;
  problem.order[7] = 64;
  expect_ordered(problem, problem.q, problem.caller_q, TokenProblem::kHeads);
}

INSTANTIATE_TEST_SUITE_P(HeadDims, Permute, testing::ValuesIn(single::permute_variants()),
                         [](const auto& info) {
                           return "d" + std::to_string(info.param.head_dim);
                         });

}  // namespace
}  // namespace lacuna::device
