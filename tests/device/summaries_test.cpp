// Summaries of key tiles that stay from launch to launch (templates/select/pooled/
// kept_summaries.cuh), on emulated blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "templates/shared/select_block.cuh"
#include "tests/device/runner.hpp"
#include "tests/numerics/harness/kept_summaries.hpp"
#include "tests/numerics/harness/sequences.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

using numerics::Binding;
using numerics::KeptSummaries;
using numerics::Reported;

const emulation::Schedule kSchedule = {emulation::Landing::kLate, emulation::WarpOrder::kShuffled,
                                       3};

/// Whose summaries may stay; in the short tier one of each spec.
std::vector<const Subject*> subjects_of(const std::vector<Subject>& all) {
  std::vector<const Subject*> found;
  std::set<std::string> specs;
  for (const Subject& subject : all) {
    if (subject.contract.summary_tile == 0) continue;
    if (test::by_tier(true, specs.insert(subject.spec).second)) found.push_back(&subject);
  }
  EXPECT_FALSE(found.empty());
  return found;
}

/// The same keys as far as both problems have them.
void copy_keys(const oracle::Problem& from, oracle::Problem& to) {
  const auto row = static_cast<std::size_t>(to.d);
  const auto heads = to.k.size() / row / static_cast<std::size_t>(to.n_k);
  const auto keys = static_cast<std::size_t>(std::min(from.n_k, to.n_k));
  for (std::size_t head = 0; head < heads; ++head)
    std::copy_n(
        from.k.begin() +
            static_cast<std::ptrdiff_t>(head * static_cast<std::size_t>(from.n_k) * row),
        keys * row,
        to.k.begin() + static_cast<std::ptrdiff_t>(head * static_cast<std::size_t>(to.n_k) * row));
}

/// A launch of `before` keys, one of some more that is told so, and one whose summaries are zeros:
/// which it takes for those of its keys.
void expect_that_they_stay(const Subject& subject, int n_q, int before, int more) {
  SCOPED_TRACE(testing::Message() << subject.name << ", " << n_q << " queries, " << before << " + "
                                  << more << " keys");
  numerics::Case shape;
  shape.n_b = test::by_tier(2, 1);
  shape.n_h = 4, shape.n_h_kv = 2, shape.n_q = n_q, shape.n_k = before;
  Problem first = make_problem(subject, shape, 51);
  shape.n_k += more;
  const Problem whole = make_problem(subject, shape, 52);
  copy_keys(whole.variant.problem, first.variant.problem);

  Binding binding(false, whole.shape, whole.variant);
  KeptSummaries kept(binding.tensors, shape.n_b, shape.n_h_kv, shape.n_k,
                     subject.contract.summary_tile, subject.contract.summary_elements);
  const auto launch_with = [&](Binding& launched, const Problem& problem, int known) {
    kept.know(binding.tensors,
              std::vector<std::int32_t>(static_cast<std::size_t>(shape.n_b), known));
    kept.pass(launched.args);
    return check_variant(problem.shape, problem.variant, run(subject, launched, kSchedule), true);
  };
  Binding of_first(false, first.shape, first.variant);
  EXPECT_EQ(launch_with(of_first, first, 0), "");
  EXPECT_EQ(launch_with(binding, whole, before), "");
  EXPECT_EQ(launch_with(binding, whole, before + more), "");
  kept.fill_with_zeros(binding.tensors);
  EXPECT_NE(launch_with(binding, whole, before), "") << "zeros were not read";
  EXPECT_EQ(launch_with(binding, whole, 0), "");
}

/// Where few rows ask about many tiles, and where an estimate reads the summaries.
TEST(Summaries, StayFromLaunchToLaunch) {
  for (const Subject* subject : subjects_of(subjects())) {
    expect_that_they_stay(*subject, 1, kManyTiles * subject->contract.summary_tile + 5, 100);
    expect_that_they_stay(*subject, 130, 300, 75);
  }
}

/// Each sequence has a slot, wherever its keys lie.
TEST(Summaries, OfEachSequence) {
  for (const Subject* subject : subjects_of(sequence_subjects())) {
    SCOPED_TRACE(subject->name);
    numerics::SequenceCase c;
    c.variant = twin_of(*subject), c.dtype = subject->dtype, c.d = subject->head_dim;
    c.d_v = subject->contract.head_dim_v, c.tile = subject->tile;
    c.e4m3 = subject->contract.kv == KvFormat::kE4M3;
    c.n_h = 4, c.n_h_kv = 2;
    c.page_tokens = subject->contract.batch == BatchLayout::kPages ? 32 : 0;
    c.lengths = {{1, 300}, {0, 40}, {37, 290}, {5, 0}, {1, kManyTiles * 16 + 30}, {3, 400}};
    numerics::SequenceBatch batch(false, c.fitting_order(), 53);
    for (numerics::Variant& variant : batch.variants) follow_spec(*subject, variant);
    const auto count = static_cast<int>(c.lengths.size());
    KeptSummaries kept(batch.tensors, count, c.n_h_kv, c.most_keys(),
                       subject->contract.summary_tile, subject->contract.summary_elements);
    std::vector<std::int32_t> all, half;
    for (const auto& [n_q, n_k] : c.lengths) all.push_back(n_k), half.push_back(n_k / 2);
    for (const auto& known : {std::vector<std::int32_t>(all.size(), 0), half, all}) {
      kept.know(batch.tensors, known);
      kept.pass(batch.args);
      batch.poison();
      ASSERT_EQ(launch(*subject, batch.args, kSchedule), "");
      EXPECT_EQ(batch.check(true), "");
    }
    kept.fill_with_zeros(batch.tensors);
    batch.poison();
    ASSERT_EQ(launch(*subject, batch.args, kSchedule), "");
    EXPECT_NE(batch.check(true), "") << "zeros were not read";
  }
}

}  // namespace
}  // namespace lacuna::device
