// Branches of a spec on emulated blocks: attend of each, means before it, and the sum that one
// hands on to the next in a workspace that all share.
#include "tests/numerics/harness/branches.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/device/runner.hpp"
#include "tests/numerics/harness/codes/uniform_codes.hpp"
#include "tests/numerics/harness/sequences.hpp"

namespace lacuna::device {
namespace {

using numerics::Case;
using numerics::Fill;

class Branches : public testing::TestWithParam<BranchesSubject> {};

void check(const BranchesSubject& subject, Case c, const emulation::Schedule& schedule) {
  ASSERT_EQ(subject.branches.size(), subject.spec.branches.size()) << "the table lacks a branch";
  c.variant = subject.branches.front().spec;
  if (subject.branches.front().contract.takes_order) c.n_k = c.n_q;  // they are permuted alike
  c.dtype = subject.branches.front().dtype;
  c.d = subject.branches.front().head_dim;
  c.d_v = subject.branches.front().contract.head_dim_v;
  numerics::JoinedVariant joined = numerics::make_joined(c, 5);
  std::optional<numerics::UniformCodes> codes;
  if (subject.branches.front().contract.kv == KvFormat::kE4M3) {
    codes.emplace(c, numerics::Scales::kOfHeads, joined.variant.problem);
    numerics::join_again(c, 5, joined);
  }
  numerics::Binding binding(false, c, joined.variant);
  if (codes) codes->bind(binding, c);
  binding.has_lse = subject.spec.attention.lse;
  if (!binding.has_lse) binding.args.lse = nullptr;
  binding.args.counts = binding.args.tile_mask = nullptr;
  ASSERT_EQ(launch(subject, binding.args, schedule), "");
  const numerics::OutputError error =
      compare_output(joined.variant, joined.expected, binding.collect(), 0);
  const numerics::Tolerance most = tolerance_of(c.dtype, joined.variant.problem, true);
  EXPECT_EQ(error.mismatch, "");
  EXPECT_LE(error.rel_l1, joined.cancellation * most.rel_l1);
  EXPECT_LE(error.rel_max, joined.cancellation * most.rel_max);
  EXPECT_LE(error.lse, most.lse);
}

TEST_P(Branches, AreJoinedAsTheSpecSays) {
  check(GetParam(), {"", {}, 0, 1, 4, 2, 150, 203, Fill::kNormal, true}, {});
}

TEST_P(Branches, OfRowsThatSeeNothing) {
  check(GetParam(), {"", {}, 0, 2, 1, 1, 140, 70, Fill::kClustered, false}, {});
}

/// Sequences of all lengths, whose sums lie in pieces of one size.
TEST(BranchesOfSequences, AreJoinedForEachOfThem) {
  EXPECT_GE(branches_of_sequences_subjects().size(), 3U);
  for (const BranchesSubject& subject : branches_of_sequences_subjects()) {
    const Subject& first = subject.branches.front();
    numerics::SequenceCase c;
    c.variant = first.spec, c.dtype = first.dtype, c.d = first.head_dim;
    c.d_v = first.contract.head_dim_v;
    c.page_tokens = first.contract.batch == BatchLayout::kPages ? 32 : 0;
    c.e4m3 = first.contract.kv == KvFormat::kE4M3;
    c.heads_inside = true, c.spare = 40;
    c.lengths = {{1, 300}, {0, 40}, {37, 37}, {5, 0}, {150, 170}, {20, 7}, {1, 1}};
    SCOPED_TRACE(testing::Message() << subject.name << ": " << c.text());
    ASSERT_EQ(subject.branches.size(), subject.spec.branches.size()) << "the table lacks a branch";
    numerics::SequenceBatch batch(false, c.fitting_order(), 19);
    ASSERT_EQ(launch(subject, batch.args,
                     {emulation::Landing::kLate, emulation::WarpOrder::kShuffled, 5}),
              "");
    EXPECT_EQ(batch.check(true), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Branches, testing::ValuesIn(branches_subjects()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lacuna::device
