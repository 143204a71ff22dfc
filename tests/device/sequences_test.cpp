// Batches of sequences on emulated blocks: both families, rows and pages, lengths of 0, heads that
// share keys in any number.
#include "tests/numerics/harness/sequences.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

#include "tests/device/runner.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

using numerics::SequenceBatch;
using numerics::SequenceCase;

const emulation::Schedule kEarlySequences = {emulation::Landing::kEarly,
                                             emulation::WarpOrder::kAscending, 0};
const emulation::Schedule kLateSequences = {emulation::Landing::kLate,
                                            emulation::WarpOrder::kShuffled, 5};

/// The variant whose formulas a spec has.
std::string variant_of(const Subject& subject) {
  const bool has_own_width = subject.spec == "wide-values" || subject.spec == "uneven-widths";
  return has_own_width ? "flash-decoding" : twin_of(subject);
}

/// The case, as a kernel takes it.
SequenceCase case_of(const Subject& subject, SequenceCase c) {
  c.variant = variant_of(subject);
  c.dtype = subject.dtype, c.d = subject.head_dim, c.d_v = subject.contract.head_dim_v;
  c.tile = subject.tile;
  c.e4m3 = subject.contract.kv == KvFormat::kE4M3;
  if (subject.contract.batch != BatchLayout::kPages) c.page_tokens = 0;
  return c.fitting_order();
}

void expect_right(const Subject& subject, const SequenceCase& given,
                  const emulation::Schedule& schedule, const Residency& residency = {}) {
  const SequenceCase c = case_of(subject, given);
  SCOPED_TRACE(testing::Message() << subject.name << ": " << c.text());
  SequenceBatch batch(false, c, 17);
  for (numerics::Variant& variant : batch.variants) follow_spec(subject, variant);
  ASSERT_EQ(launch(subject, batch.args, schedule, residency), "");
  EXPECT_EQ(batch.check(true), "");
}

TEST(Sequences, BothFamiliesAndLayoutsAreTested) {
  for (const char* name :
       {"sm_90a_sequences", "sm_90a_pages", "sm_100a_sequences", "sm_100a_pages"}) {
    EXPECT_TRUE(std::ranges::any_of(sequence_subjects(), [&](const Subject& subject) {
      return subject.name.ends_with(name);
    })) << name;
  }
}

/// By wgmma, in rows and in pages.
TEST(Sequences, ValuesOfAnotherWidthThanKeysAreTested) {
  for (const BatchLayout batch : {BatchLayout::kSequences, BatchLayout::kPages}) {
    EXPECT_TRUE(std::ranges::any_of(sequence_subjects(), [&](const Subject& subject) {
      return subject.contract.batch == batch && !subject.launch.maps.empty() &&
             subject.contract.head_dim_v != subject.head_dim;
    })) << static_cast<int>(batch);
  }
}

/// Long and short ones, some without queries or without keys, more queries than keys.
TEST(Sequences, OfAllLengths) {
  SequenceCase c;
  c.page_tokens = 32;
  c.lengths = {{1, 300}, {0, 40}, {37, 37}, {5, 0}, {150, 170}, {20, 7}, {1, 1}};
  for (const Subject& subject : sequence_subjects()) expect_right(subject, c, kEarlySequences);
}

/// One query of each: work tiles are split.
TEST(Sequences, FewQueriesOfManyKeys) {
  SequenceCase c;
  c.n_h = 8, c.n_h_kv = 2, c.page_tokens = 16, c.heads_inside = true, c.spare = 9;
  c.lengths = {{1, test::by_tier(1900, 1100)}, {2, 65}};
  for (const Subject& subject : sequence_subjects()) expect_right(subject, c, kLateSequences);
}

/// A launch that may have many queries for each key uses all places of values.
TEST(Sequences, ManyQueriesUseAllPlacesOfValues) {
  SequenceCase c;
  c.lengths = {{1, 700}, {40, 170}}, c.spare = 2048;
  for (const Subject& subject : sequence_subjects()) {
    const bool is_asked = subject.spec == "dense" || subject.spec == "wide-values";
    if (!is_asked || !subject.name.ends_with("sm_90a_sequences")) continue;
    for (const auto& schedule : {kEarlySequences, kLateSequences})
      expect_right(subject, c, schedule);
  }
}

/// Is this value of `count` the subject's turn? All are, in the short tier one for each subject.
bool is_turn(const Subject& subject, std::size_t value, std::size_t count) {
  const auto place = static_cast<std::size_t>(&subject - sequence_subjects().data());
  return test::by_tier(true, place % count == value);
}

/// Heads of a KV head fill the rows of a warpgroup, or leave some of them empty.
TEST(Sequences, HeadsInAnyNumber) {
  constexpr std::pair<int, int> kHeads[] = {{6, 2}, {7, 1}, {2, 2}};
  for (std::size_t n = 0; n < std::size(kHeads); ++n) {
    SequenceCase c;
    c.n_h = kHeads[n].first, c.n_h_kv = kHeads[n].second, c.page_tokens = 128;
    c.lengths = {{50, 260}, {3, 128}};
    for (const Subject& subject : sequence_subjects()) {
      if (subject.head_dim == 64 && is_turn(subject, n, std::size(kHeads)))
        expect_right(subject, c, kEarlySequences);
    }
  }
}

/// Each warp that loads, and one that computes, lags far behind the others: a slot that it waits
/// for must not be filled and freed again meanwhile.
TEST(Sequences, AWarpThatLagsIsNotOvertaken) {
  for (const int page_tokens : {64, 128}) {
    SequenceCase c;
    c.page_tokens = page_tokens;
    c.lengths = {{1, 520}, {2, 300}, {1, 0}, {3, 400}};
    for (const Subject& subject : sequence_subjects()) {
      const bool has_pages = subject.name.find("sm_90a_pages") != std::string::npos;
      if ((subject.spec != "dense" && subject.spec != "mla") || !has_pages) continue;
      for (const std::uint32_t warp : {0U, 8U, 9U, 10U, 11U})
        expect_right(subject, c, {emulation::Landing::kLate, emulation::WarpOrder::kStarved, warp});
    }
  }
}

/// Blocks that run at the same time make parts of one schedule, and none begins before all parts
/// are made: more of them than blocks, and blocks that find none left. One that lags has the part
/// with the longest sequences, which come first.
TEST(Sequences, BlocksTogetherWaitForTheSchedule) {
  SequenceCase c;
  c.page_tokens = 64;
  for (int n = 0; n < 30; ++n) c.lengths.emplace_back(n % 3, 130 - 4 * ((n + 18) % 30));
  const emulation::Schedule last_first = {emulation::Landing::kEarly,
                                          emulation::WarpOrder::kDescending, 0};
  const emulation::Schedule second_lags = {emulation::Landing::kEarly,
                                           emulation::WarpOrder::kStarved, 1};
  for (const Subject& subject : sequence_subjects()) {
    if (subject.spec != "dense" || subject.name.find("sm_90a") == std::string::npos) continue;
    for (const auto& schedule : {kLateSequences, second_lags})
      expect_right(subject, c, schedule, {.multiprocessors = 4, .together = true});
    if (!test::by_tier(true, false)) continue;
    expect_right(subject, c, last_first, {.multiprocessors = 5, .together = true});
    expect_right(subject, c, kEarlySequences, {.multiprocessors = 2, .together = true});
  }
}

/// Blocks of several sequences run at the same time and share scratch: none writes what another
/// reads, though their sequences have other lengths.
TEST(Sequences, BlocksTogetherHaveScratchOfTheirOwn) {
  SequenceCase c;
  c.n_h = 4, c.n_h_kv = 2, c.page_tokens = 64;
  c.lengths = {{40, 700}, {70, 90}, {3, 300}, {65, 200}};
  int asked = 0;
  for (const Subject& subject : sequence_subjects()) {
    const bool has_scratch = std::ranges::any_of(
        subject.launch.slots, [](const WorkspaceSlot& slot) { return slot.name == "row_weights"; });
    if (!has_scratch) continue;
    ++asked;
    expect_right(subject, c, kLateSequences, {.multiprocessors = 6, .together = true});
  }
  if (asked == 0) GTEST_SKIP() << "accesses of no kernel with such scratch are traced";
}

/// Logits that outgrow what came before, so that steps are worked out again.
TEST(Sequences, ValuesOfAllKinds) {
  using numerics::Fill;
  constexpr Fill kFills[] = {Fill::kHuge, Fill::kNegative, Fill::kRising, Fill::kSharp};
  for (std::size_t n = 0; n < std::size(kFills); ++n) {
    SequenceCase c;
    c.page_tokens = 64, c.fill = kFills[n];
    c.lengths = {{40, 400}, {1, 200}};
    for (const Subject& subject : sequence_subjects()) {
      const bool is_asked = subject.spec == "dense" || subject.spec == "flash-decoding";
      if (is_asked && is_turn(subject, n % 2, 2)) expect_right(subject, c, kLateSequences);
    }
  }
}

/// Penalties of up to 1 for each token of distance: a tile's logits lie so far above those before
/// that f32 does not hold their weights, and of some heads alone.
TEST(Sequences, LogitsThatRiseByMoreThanAWeightHolds) {
  SequenceCase c;
  c.n_h = 16, c.n_h_kv = 2, c.page_tokens = 64, c.lengths = {{20, 700}, {1, 400}};
  for (const Subject& subject : sequence_subjects()) {
    if (subject.spec == "alibi") expect_right(subject, c, kEarlySequences);
  }
}

/// Does the device share out the tiles of rows as the whole batch asks for? Then there is room for
/// a number of items that does not depend on how many sequences there are.
bool splits_by_itself(const Subject& subject) {
  const auto found =
      std::ranges::find(subject.launch.values, std::string_view("partials"), &LaunchValue::name);
  if (found == subject.launch.values.end()) return false;
  const auto room_of = [&](std::int32_t count) {
    std::vector<std::int32_t> values(subject.launch.values.size());
    evaluate_launch_values(subject.launch,
                           {.n_b = count, .n_h = 1, .n_h_kv = 1, .n_q = 1, .n_k = 1}, values.data(),
                           132);
    return values[static_cast<std::size_t>(found - subject.launch.values.begin())];
  };
  return room_of(1) > 0 && room_of(1) == room_of(2);
}

/// What stands beside a sequence in its batch does not change a bit of its results where the number
/// of items does not depend on it; nor what a predictor or a gate decides.
TEST(Sequences, ResultsDoNotDependOnTheBatchWhereSplitsAreFixed) {
  SequenceCase alone;
  alone.page_tokens = 16, alone.lengths = {{3, 333}}, alone.spare = 200;
  SequenceCase among = alone;
  among.lengths = {{3, 333}, {90, 500}, {1, 70}}, among.spare = 33;
  for (const Subject& subject : sequence_subjects()) {
    const bool has_fixed_splits = subject.spec == "flash-decoding" || subject.spec == "split-mla" ||
                                  subject.spec == "uneven-widths";
    if (!has_fixed_splits && !case_of(subject, alone).is_tiled()) continue;
    if (splits_by_itself(subject)) continue;
    // Codes of e4m3 have scales of the pages, which fall to the sequences as they come.
    if (subject.contract.kv == KvFormat::kE4M3) continue;
    SequenceBatch first(false, case_of(subject, alone), 23);
    SequenceBatch second(false, case_of(subject, among), 23);
    ASSERT_EQ(launch(subject, first.args, kEarlySequences), "");
    ASSERT_EQ(launch(subject, second.args, kLateSequences), "");
    const auto rows_of = [&](SequenceBatch& batch) {
      const std::vector<double> o = batch.tensors.download(batch.o, nullptr);
      const auto rows = batch.o.shape[2], d = batch.o.shape[3];
      std::vector<double> own;
      for (std::int64_t h = 0; h < batch.shape.n_h; ++h) {
        const auto begin = o.begin() + (h * rows + batch.first_queries[0]) * d;
        own.insert(own.end(), begin, begin + 3 * d);
      }
      return own;
    };
    EXPECT_EQ(rows_of(first), rows_of(second)) << subject.name;
  }
}

/// Bits that a launch has decided, for each sequence, serve the next one in a workspace of its own.
TEST(Sequences, SelectionsOfEachSequence) {
  SequenceCase c;
  c.n_h = 4, c.n_h_kv = 2, c.page_tokens = 16, c.spare = 600;
  c.lengths = {{70, 700}, {0, 90}, {130, 260}, {7, 64}};
  int asked = 0;
  for (const Subject& subject : sequence_subjects()) {
    if (subject.launch.kept_slot < 0 || !case_of(subject, c).is_tiled()) continue;
    ++asked;
    const SequenceCase own = case_of(subject, c);
    SCOPED_TRACE(testing::Message() << subject.name << ": " << own.text());
    SequenceBatch batch(false, own, 29);
    std::vector<std::uint64_t> kept(std::size_t{1} << 16, ~std::uint64_t{0});
    lacuna_selection selection{sizeof selection, kept.data(), kept.size() * 8, 0};
    batch.args.selection = &selection;
    for (selection.calls = 0; selection.calls < 2; ++selection.calls) {
      batch.poison();
      ASSERT_EQ(launch(subject, batch.args, kLateSequences), "");
      EXPECT_EQ(batch.check(true), "") << selection.calls;
    }
  }
  EXPECT_GT(asked, 0);
}

/// Tiles of each sequence's own: predictors and gates see its tokens, its lengths and its pages.
TEST(Sequences, TilesOfEachSequence) {
  SequenceCase c;
  c.n_h = 4, c.n_h_kv = 2, c.page_tokens = 16, c.heads_inside = true, c.spare = 40;
  c.fill = numerics::Fill::kClustered;
  c.lengths = {{1, 700}, {0, 90}, {130, 260}, {7, 0}, {64, 64}, {1, 1}, {33, 500}};
  for (const Subject& subject : sequence_subjects()) {
    if (case_of(subject, c).is_tiled()) expect_right(subject, c, kLateSequences);
  }
}

}  // namespace
}  // namespace lacuna::device
