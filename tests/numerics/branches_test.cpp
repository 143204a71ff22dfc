// Several attends in one spec: what each of them has to give by the oracle, joined in fp64. Tiles
// of branches with a predictor are those that the same predictor reports by itself, checked as of
// any variant.
#include "tests/numerics/harness/branches.hpp"

#include <gtest/gtest.h>

#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {
namespace {

/// The tile mask of one branch.
struct BranchReport {
  Tensor tile_mask;
  lacuna_branch_args args{};
  const lacuna_branch_args* all[1] = {&args};

  void ask(const TestKernel& kernel, const Case& c, const std::string& branch, Binding& binding) {
    std::int32_t tile_q = 1, tile_k = 1;
    ASSERT_EQ(lacuna_branch_tile(kernel.kernel, branch.c_str(), &tile_q, &tile_k), LACUNA_OK)
        << lacuna_last_error();
    const std::int64_t q_tiles = (c.n_q + tile_q - 1) / tile_q;
    tile_mask = binding.tensors.poisoned_u8({c.n_b, c.n_h, q_tiles, (c.n_k + tile_k - 1) / tile_k});
    args.struct_size = sizeof(args);
    args.name = branch.c_str();
    args.tile_mask = tile_mask.view();
    binding.args.branches = all;
    binding.args.branches_count = 1;
  }
};

class Branches : public testing::TestWithParam<Case> {};

TEST_P(Branches, AreJoinedAsTheSpecSays) {
  constexpr std::uint32_t kSeed = 11;
  const Case& c = GetParam();
  std::string predicting;  // the branch that has a predictor
  std::vector<std::uint8_t> tile_mask;
  const JoinedVariant joined = make_joined(c, kSeed, [&](const std::string& name) {
    PredictedBranch branch = predicted_branch(c, name, kSeed);
    EXPECT_EQ(branch.wrong, "") << name;
    predicting = name.substr(name.rfind('-') + 1);
    tile_mask = branch.tile_mask;
    return branch;
  });
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  Binding binding(engine().is_cuda, c, joined.variant);
  binding.args.counts = binding.args.tile_mask = nullptr;
  binding.has_lse = c.variant == "merged-branches" || c.variant == "ordered-merged";
  if (!binding.has_lse) binding.args.lse = nullptr;
  ASSERT_EQ(binding.provide(kernel, c), "");
  BranchReport report;
  if (!predicting.empty()) report.ask(kernel, c, predicting, binding);
  for (int launch = 0; launch < 2; ++launch) {  // the second one finds the sums of the first
    binding.poison();
    ASSERT_EQ(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK) << lacuna_last_error();
    const Reported got = binding.collect();
    EXPECT_FALSE(got.padding_touched);
    if (!predicting.empty()) {
      EXPECT_EQ(binding.tensors.download_u8(report.tile_mask), tile_mask) << predicting;
    }
    const OutputError error = compare_output(joined.variant, joined.expected, got, 0);
    const Tolerance most = tolerance_of(c.dtype, joined.variant.problem, engine().is_cuda);
    EXPECT_EQ(error.mismatch, "");
    EXPECT_LE(error.rel_l1, joined.cancellation * most.rel_l1);
    EXPECT_LE(error.rel_max, joined.cancellation * most.rel_max);
    EXPECT_LE(error.lse, most.lse);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name :
       {"merged-branches", "weighted-branches", "pooled-branches", "sunk-branches", "nsa", "vsa"}) {
    all.push_back({name, DType::kBF16, 64, 2, 4, 2, 200, 333, Fill::kClustered, true});
    all.push_back({name, DType::kF16, 128, 1, 2, 1, 333, 333, Fill::kNormal, false});
    all.push_back({name, DType::kBF16, 128, 1, 2, 2, 7, 130, Fill::kNormal, false});
    if (device_under_test() == "cpu")
      all.push_back({name, DType::kF32, 64, 1, 2, 1, 129, 129, Fill::kSharp, false});
  }
  // Bands of a head dim of 128; values that are whole, and of a width of their own.
  for (const auto& [name, d_v] : {std::pair("differential", 128), {"banded-branches", 64}}) {
    all.push_back({name, DType::kBF16, 128, 2, 4, 2, 200, 333, Fill::kClustered, true, d_v});
    all.push_back({name, DType::kF16, 128, 1, 2, 1, 7, 130, Fill::kNormal, false, d_v});
    if (device_under_test() == "cpu")
      all.push_back({name, DType::kF32, 128, 1, 2, 1, 129, 129, Fill::kSharp, false, d_v});
  }
  // Orders of tokens: as many queries as keys; values of a width of their own.
  for (const char* name : {"ordered-branches", "ordered-merged"}) {
    all.push_back({name, DType::kBF16, 64, 2, 4, 2, 333, 333, Fill::kClustered, true});
    all.push_back({name, DType::kF16, 128, 1, 2, 1, 130, 130, Fill::kNormal, false, 64});
    if (device_under_test() == "cpu")
      all.push_back({name, DType::kF32, 64, 1, 2, 1, 129, 129, Fill::kSharp, false});
  }
  // Rows without a key in any branch.
  all.push_back({"merged-branches", DType::kBF16, 64, 1, 2, 1, 150, 90, Fill::kNormal, false});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Branches, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.text(); });

TEST(BranchesRefuse, WhatIsOfOneAttend) {
  const Case c{"weighted-branches", DType::kBF16, 64, 1, 2, 1, 64, 64, Fill::kNormal, false};
  const JoinedVariant joined = make_joined(c, 1);
  TestKernel kernel(engine(), c);
  ASSERT_EQ(kernel.error, "");
  Binding binding(engine().is_cuda, c, joined.variant);
  ASSERT_EQ(binding.provide(kernel, c), "");
  EXPECT_NE(lacuna_launch(kernel.kernel, &binding.args), LACUNA_OK);
  const std::string said = lacuna_last_error();
  EXPECT_NE(said.find("argument lse: expected null, got a tensor: branches with weights have no "
                      "log-sum-exp in common; without weights they are merged by it"),
            std::string::npos)
      << said;
  EXPECT_NE(
      said.find("argument tile_mask: expected null, got a tensor: each branch of the spec has "
                "tiles of its own, and lacuna_branch_args takes its reports"),
      std::string::npos)
      << said;
}

}  // namespace
}  // namespace lacuna::numerics
