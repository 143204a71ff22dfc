// Summaries of key tiles that stay from launch to launch, through the C ABI, on the device under
// test. On the CPU they are made anew, so that a launch computes the same whatever they hold.
#include <gtest/gtest.h>

#include <array>

#include "tests/numerics/harness/kept_summaries.hpp"
#include "tests/numerics/harness/sequence_kernels.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {
namespace {

std::array<std::int64_t, 4> extents_of(const SequenceBatch& batch, lacuna_kernel* kernel) {
  const lacuna_shape shape = batch.launch_shape();
  std::array<std::int64_t, 4> extents = {};
  EXPECT_EQ(lacuna_summaries_extents(kernel, &shape, extents.data()), LACUNA_OK);
  return extents;
}

/// Nothing is known; half of the keys are; all are; and then they are zeros.
void expect_that_they_stay(const SequenceCase& c, std::uint32_t seed) {
  SCOPED_TRACE(c.text());
  SequenceBatch batch(engine().is_cuda, c.fitting_order(), seed);
  const auto extents = extents_of(batch, kernel_for(c).kernel);
  ASSERT_GT(extents[2], 0);
  const int tile = static_cast<int>((c.most_keys() + extents[2] - 1) / extents[2]);
  KeptSummaries kept(batch.tensors, static_cast<int>(extents[0]), static_cast<int>(extents[1]),
                     c.most_keys(), tile, static_cast<int>(extents[3]));
  std::vector<std::int32_t> all, half;
  for (const auto& [n_q, n_k] : c.lengths) all.push_back(n_k), half.push_back(n_k / 2);
  for (const auto& known : {std::vector<std::int32_t>(all.size(), 0), half, all}) {
    kept.know(batch.tensors, known);
    kept.pass(batch.args);
    batch.poison();
    EXPECT_EQ(launch(batch), "");
  }
  kept.fill_with_zeros(batch.tensors);
  batch.poison();
  EXPECT_EQ(launch(batch) == "", !engine().is_cuda);
}

TEST(Summaries, StayFromLaunchToLaunch) {
  std::vector<SequenceCase> cases;
  for (const char* variant : {"quest", "topk-blocks", "flexprefill"}) {
    for (const int page_tokens : {0, 64}) {
      SequenceCase& c = cases.emplace_back();
      c.variant = variant, c.d = 128, c.n_h = 8, c.n_h_kv = 2, c.page_tokens = page_tokens;
      c.lengths = {{1, 700}, {0, 50}, {130, 450}, {5, 0}, {2, 3000}, {1, 9000}};
      c.lengths.resize(test::by_tier<std::size_t>(6, engine().is_cuda ? 6 : 4));
    }
  }
  compile_ahead(cases);
  std::uint32_t seed = 60;
  for (SequenceCase& c : cases) {
    c.tile = kernel_for(c).tile;
    expect_that_they_stay(c, ++seed);
  }
}

/// What a caller gets wrong is said by name.
TEST(Summaries, ThatDoNotFitAreRefused) {
  SequenceCase c;
  c.variant = "quest", c.lengths = {{1, 300}, {2, 500}};
  c.tile = kernel_for(c).tile;
  const auto refusal = [&](const char* variant, auto change) {
    c.variant = variant;
    SequenceBatch batch(engine().is_cuda, c, 3);
    KeptSummaries kept(batch.tensors, 2, c.n_h_kv, c.most_keys(), 16, 2 * c.d);
    kept.pass(batch.args);
    change(batch.args);
    return launch(batch);
  };
  const auto expect_words = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  expect_words(refusal("quest", [](auto& args) { args.summarised = nullptr; }),
               "argument summarised: expected i32 [batch]");
  expect_words(refusal("quest", [](auto& args) { args.k_summaries = nullptr; }),
               "argument k_summaries: expected a tensor beside summarised");
  expect_words(refusal("quest", [](auto& args) { args.sequences = nullptr; }), "sequences");
  expect_words(refusal("dense", [](auto&) {}),
               "argument k_summaries: expected null, got a tensor: no summary of the spec");
}

}  // namespace
}  // namespace lacuna::numerics
