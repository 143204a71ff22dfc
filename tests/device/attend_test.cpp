// The generated kernels of every spec of the table on emulated blocks: against the oracle in two
// kernels, and the same bits whatever the order of warps and the moment at which copies land.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <ostream>
#include <random>
#include <set>

#include "tests/device/runner.hpp"
#include "tests/numerics/variants/variant_parts.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {

void PrintTo(const Subject& subject, std::ostream* out);  // found by GoogleTest
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

namespace {

using emulation::Landing;
using emulation::Schedule;
using emulation::WarpOrder;
using numerics::Case;
using numerics::Fill;
using numerics::Reported;

const Schedule kPlain = {Landing::kEarly, WarpOrder::kAscending, 0};
const Schedule kOthers[] = {
    {Landing::kLate, WarpOrder::kAscending, 0},  {Landing::kEarly, WarpOrder::kDescending, 0},
    {Landing::kLate, WarpOrder::kDescending, 0}, {Landing::kEarly, WarpOrder::kShuffled, 1},
    {Landing::kLate, WarpOrder::kShuffled, 2},
};

Case shape_of(int n_b, int n_h, int n_h_kv, int n_q, int n_k, bool token_major = false) {
  Case c;
  c.n_b = n_b, c.n_h = n_h, c.n_h_kv = n_h_kv, c.n_q = n_q, c.n_k = n_k;
  c.fill = Fill::kUneven;
  c.token_major = token_major;
  return c;
}

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  for (const double x : values) bits.push_back(std::bit_cast<std::uint64_t>(x));
  return bits;
}

void expect_same_bits(const Reported& a, const Reported& b) {
  EXPECT_EQ(b.error, "");
  EXPECT_TRUE(bits_of(a.o) == bits_of(b.o)) << "o differs";
  EXPECT_TRUE(bits_of(a.lse) == bits_of(b.lse)) << "lse differs";
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.tile_mask, b.tile_mask);
}

/// The subject's place among them, by which the short tier takes turns.
std::size_t turn_of(const Subject& subject) {
  return static_cast<std::size_t>(std::ranges::find(subjects(), subject.name, &Subject::name) -
                                  subjects().begin());
}

/// The schedules beside the plain one; in the short tier one of those in which all differs from it,
/// the other for the next subject. Races are found under any.
std::vector<Schedule> other_schedules(const Subject& subject) {
  return test::by_tier(std::vector(std::begin(kOthers), std::end(kOthers)),
                       std::vector{kOthers[2 + turn_of(subject) % 2]});
}

/// All of the shapes, or in the short tier two of them, others for the next subject.
std::vector<Case> shapes_for(const Subject& subject, const std::vector<Case>& shapes) {
  const std::size_t turn = turn_of(subject);
  return test::by_tier(shapes,
                       {shapes[2 * turn % shapes.size()], shapes[(2 * turn + 1) % shapes.size()]});
}

class Kernel : public testing::TestWithParam<Subject> {};

TEST_P(Kernel, AgreesWithTheOracle) {
  const std::vector<Case> shapes = {shape_of(2, 4, 2, 1, 1),         shape_of(1, 2, 2, 65, 129),
                                    shape_of(1, 2, 1, 15, 15, true), shape_of(1, 2, 1, 129, 65),
                                    shape_of(1, 1, 1, 1, 300, true), shape_of(1, 2, 1, 300, 300)};
  for (const Case& shape : shapes_for(GetParam(), shapes)) {
    const Problem problem = make_problem(GetParam(), shape, 11);
    const Reported got = run(GetParam(), problem, kPlain);
    EXPECT_EQ(check_variant(problem.shape, problem.variant, got, true), "") << problem.shape.text();
  }
}

TEST_P(Kernel, GivesTheSameBitsUnderAnySchedule) {
  // Uneven keys end in a gated tile, others in one that counts.
  Case even = shape_of(1, 2, 1, 130, 130);
  even.fill = Fill::kNormal;
  const std::vector<Case> shapes = {shape_of(1, 2, 1, 140, 300), even};
  for (const Case& shape : test::by_tier(shapes, {shape_of(1, 1, 1, 140, 300)})) {
    const Problem problem = make_problem(GetParam(), shape, 12);
    const Reported plain = run(GetParam(), problem, kPlain);
    ASSERT_EQ(plain.error, "");
    for (const Schedule& other : other_schedules(GetParam())) {
      SCOPED_TRACE(testing::Message() << "landing " << static_cast<int>(other.landing) << ", order "
                                      << static_cast<int>(other.order));
      expect_same_bits(plain, run(GetParam(), problem, other));
    }
  }
}

TEST_P(Kernel, KeepsANanInItsRow) {
  const std::size_t row = 33, d = static_cast<std::size_t>(GetParam().head_dim);
  const auto d_v = static_cast<std::size_t>(GetParam().contract.head_dim_v);
  Problem problem = make_problem(GetParam(), shape_of(1, 1, 1, 70, 70), 13);
  problem.variant.problem.q[row * d + 3] = std::numeric_limits<double>::quiet_NaN();
  const Reported got = run(GetParam(), problem, kPlain);
  ASSERT_EQ(got.error, "");
  for (std::size_t x = 0; x < got.o.size(); ++x)
    ASSERT_TRUE(x / d_v == row || !std::isnan(got.o[x])) << "row " << x / d_v;
}

TEST_P(Kernel, ComputesTheSameWithoutReports) {
  const Problem problem =
      make_problem(GetParam(), shape_of(1, test::by_tier(2, 1), 1, 70, 200), 14);
  const Reported plain = run(GetParam(), problem, kPlain);
  ASSERT_EQ(plain.error, "");
  numerics::Binding binding(false, problem.shape, problem.variant);
  binding.args.lse = binding.args.counts = binding.args.tile_mask = nullptr;
  const Reported bare = run(GetParam(), binding, kPlain);
  ASSERT_EQ(bare.error, "");
  EXPECT_TRUE(bits_of(plain.o) == bits_of(bare.o));
}

INSTANTIATE_TEST_SUITE_P(Generated, Kernel, testing::ValuesIn(subjects()),
                         [](const auto& info) { return info.param.name; });

/// Shapes, values and schedules that nobody chose; the message has what it takes to repeat one.
TEST(AnyShape, AgreesWithTheOracleUnderAnySchedule) {
  const int runs = test::by_tier(100, 12);
  constexpr Fill kFills[] = {Fill::kNormal,   Fill::kUneven,    Fill::kHuge,
                             Fill::kNegative, Fill::kClustered, Fill::kOutlier,
                             Fill::kTiny,     Fill::kSharp,     Fill::kRising};
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto pick_schedule = [&] {
    return Schedule{static_cast<Landing>(pick(0, 1)), static_cast<WarpOrder>(pick(0, 2)),
                    static_cast<std::uint32_t>(pick(0, 1000))};
  };
  for (int n = 0; n < runs; ++n) {
    const auto x = static_cast<std::size_t>(pick(0, static_cast<int>(std::ssize(subjects())) - 1));
    const Subject& subject = subjects()[x];
    const int n_h_kv = pick(1, 2);
    Case shape = shape_of(pick(1, 2), n_h_kv * pick(1, 2), n_h_kv, pick(1, test::by_tier(500, 160)),
                          pick(1, test::by_tier(700, 260)), pick(0, 1) == 1);
    shape.fill = kFills[pick(0, static_cast<int>(std::size(kFills)) - 1)];
    const auto seed = static_cast<std::uint32_t>(pick(1, 1 << 20));
    SCOPED_TRACE(testing::Message() << subject.name << ", " << shape.text() << ", seed " << seed);
    const Problem problem = make_problem(subject, shape, seed);
    const Reported got = run(subject, problem, pick_schedule());
    EXPECT_EQ(check_variant(problem.shape, problem.variant, got, true), "");
    expect_same_bits(got, run(subject, problem, pick_schedule()));
  }
}

/// O and LSE without reports are those of the mask that a launch with reports names, and that mask
/// is the oracle's.
void expect_the_mask_of_reports(const Subject& subject, const Problem& problem,
                                const Schedule& schedule) {
  Reported got = run(subject, problem, kPlain);
  ASSERT_EQ(got.error, "");
  numerics::Binding binding(false, problem.shape, problem.variant);
  binding.args.counts = binding.args.tile_mask = nullptr;
  const Reported bare = run(subject, binding, schedule);
  ASSERT_EQ(bare.error, "");
  got.o = bare.o, got.lse = bare.lse;
  EXPECT_EQ(check_variant(problem.shape, problem.variant, got, true), "");
}

/// Where no report is wanted a gate may be decided behind the exponentials of its step: O and LSE
/// are those of the mask that a launch with reports names.
TEST(AnyShape, DecidesWithoutReportsAsWithThem) {
  const int runs = test::by_tier(100, 16);
  constexpr Fill kFills[] = {Fill::kUneven, Fill::kNormal,    Fill::kRising,  Fill::kSharp,
                             Fill::kHuge,   Fill::kClustered, Fill::kOutlier, Fill::kNegative};
  std::vector<Subject> gated;
  for (const Subject& subject : subjects()) {
    const bool has_gate = subject.name.find("gate") != std::string::npos ||
                          subject.name.find("skip_softmax") != std::string::npos ||
                          subject.name.find("bsfa") != std::string::npos;
    // Of int8 gates each is decided first.
    if (has_gate && !subject.name.starts_with("int8") &&
        subject.name.find("sm_90a") != std::string::npos)
      gated.push_back(subject);
  }
  ASSERT_FALSE(gated.empty());
  std::mt19937 random(2);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int n = 0; n < runs; ++n) {
    const Subject& subject = gated[static_cast<std::size_t>(n) % gated.size()];
    Case shape = shape_of(1, 2, 1, pick(100, 260), pick(260, test::by_tier(760, 520)));
    shape.fill = kFills[static_cast<std::size_t>(n) / gated.size() % std::size(kFills)];
    const auto seed = static_cast<std::uint32_t>(pick(1, 1 << 20));
    SCOPED_TRACE(testing::Message() << subject.name << ", " << shape.text() << ", seed " << seed);
    const Schedule schedule{static_cast<Landing>(pick(0, 1)), static_cast<WarpOrder>(pick(0, 2)),
                            static_cast<std::uint32_t>(pick(0, 1000))};
    expect_the_mask_of_reports(subject, make_problem(subject, shape, seed), schedule);
  }
}

/// Without reports, which take another branch, conditions on distances and keys are asked in each
/// step before its products are complete.
TEST(Conditions, AreThoseOfTheMask) {
  int found = 0;
  for (const Subject& subject : subjects()) {
    if (std::ranges::count(
            std::array{"dilated", "kept-distances", "strided-lists", "strided-pattern"},
            subject.spec) == 0)
      continue;
    ++found;
    for (Case shape : {shape_of(2, 4, 2, 1, 300), shape_of(1, 2, 2, 17, 17, true),
                       shape_of(1, 2, 1, 161, 275), shape_of(1, 2, 1, 300, 129)}) {
      shape.fill = Fill::kRising;
      SCOPED_TRACE(testing::Message() << subject.name << ", " << shape.text());
      expect_the_mask_of_reports(subject, make_problem(subject, shape, 21), kOthers[4]);
    }
  }
  EXPECT_GT(found, 0);
}

/// Ranges that end at multiples of a parameter: seeds draw chunks of 1, 7 and 64 tokens, and one
/// that is longer than any sequence.
TEST(Chunks, AreThoseOfTheMask) {
  std::set<double> chunks;
  for (const Subject& subject : subjects()) {
    if (subject.spec != "chunks" && subject.spec != "chunks-before") continue;
    for (Case shape : {shape_of(2, 4, 2, 1, 1), shape_of(1, 4, 4, 17, 17),
                       shape_of(1, 4, 2, 161, 275), shape_of(1, 4, 4, 300, 129)}) {
      for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 5u}) {
        SCOPED_TRACE(testing::Message() << subject.name << ", " << shape.text() << ", " << seed);
        const Problem problem = make_problem(subject, shape, seed);
        chunks.insert(problem.variant.params.front().values.front());
        expect_the_mask_of_reports(subject, problem, kOthers[4]);
      }
    }
  }
  EXPECT_EQ(chunks, (std::set<double>{1, 7, 64, 1 << 20}));
}

/// Subjects of this spec whose gate is decided late.
std::vector<Subject> late_subjects(std::string_view spec) {
  std::vector<Subject> late;
  std::ranges::copy_if(subjects(), std::back_inserter(late), [&](const Subject& subject) {
    return subject.spec == spec && subject.name.ends_with("sm_90a");
  });
  EXPECT_FALSE(late.empty());
  return late;
}

/// Of skip-softmax: its gate closes where the gap is below `limit`.
void close_below_gap(double limit, numerics::Variant& variant) {
  const int n_k = variant.problem.n_k;
  const auto c = static_cast<float>(n_k * std::exp(limit));
  variant.params.front().values = {c};
  const double rounded = std::log(double{c} / n_k);
  variant.gate = numerics::gap_gate([rounded](const oracle::TileIndex&) { return rounded; }, {});
  variant.gate->skips_exp = true;
}

/// Of late-tile-gate: it closes where no logit of a tile reaches `limit`, but for the diagonal.
void close_below(double limit, numerics::Variant& variant) {
  std::ranges::fill(variant.params.front().values, limit);
  const int shift = variant.problem.n_k - variant.problem.n_q;
  variant.gate =
      numerics::tile_max_gate([limit](const oracle::TileIndex&) { return limit; },
                              [shift](const oracle::TileIndex& t) { return t.k1 >= t.q0 + shift; });
}

/// All rows have these logits. Values tell keys before 192 from the others.
void set_logits(oracle::Problem& problem, const std::function<double(int)>& logit_of) {
  std::ranges::fill(problem.q, 1.0);
  for (std::size_t n = 0; n < problem.k.size(); ++n) {
    const auto key = static_cast<int>(n / static_cast<std::size_t>(problem.d)) % problem.n_k;
    problem.k[n] = logit_of(key) / (problem.scale * problem.d);
    problem.v[n] = key < 192 ? 1 : -1;
  }
}

/// Where a gate closes at ties, or so far below the running maximum that weights have hardly a
/// digit left, scores decide.
TEST(LateDecisions, AreTakenByScoresWhereWeightsDoNotSay) {
  std::uint32_t seed = 50;
  for (const Subject& subject : late_subjects("skip-softmax")) {
    for (const double limit : {0.0, -40.0, -86.0}) {
      for (const Fill fill : {Fill::kIdentical, Fill::kHuge, Fill::kSharp, Fill::kRising}) {
        Case shape = shape_of(1, 1, 1, 130, 400);
        shape.fill = fill;
        SCOPED_TRACE(testing::Message() << subject.name << ", " << name_of(fill) << ", " << limit);
        Problem problem = make_problem(subject, shape, ++seed);
        close_below_gap(limit, problem.variant);
        expect_the_mask_of_reports(subject, problem, kPlain);
      }
    }
  }
}

/// Logits are 8, of keys before 192 they are 5: a sum of weights there is above a limit that no
/// weight reaches. Keys that come later hide behind -inf in the second run, those that come first
/// too, so that rows have seen nothing when the first of these is decided about.
TEST(LateDecisions, DoNotTakeSumsForWeights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double hidden : {5.0, -kInfinity}) {
    const auto logit_of = [hidden](int k) {
      if (k < 128) return hidden;
      return k < 192 ? 5.0 : (k < 256 || hidden == 5.0 ? 8.0 : hidden);
    };
    for (const double limit : {-2.0, -2.9, -3.1, -kInfinity}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", limit " << limit);
      for (const Subject& subject : late_subjects("skip-softmax")) {
        Problem problem = make_problem(subject, shape_of(1, 1, 1, 130, 400), 7);
        set_logits(problem.variant.problem, logit_of);
        close_below_gap(limit, problem.variant);
        expect_the_mask_of_reports(subject, problem, kPlain);
      }
      for (const Subject& subject : late_subjects("late-tile-gate")) {
        Problem problem = make_problem(subject, shape_of(1, 1, 1, 130, 400), 7);
        set_logits(problem.variant.problem, logit_of);
        close_below(8 + limit, problem.variant);
        expect_the_mask_of_reports(subject, problem, kPlain);
      }
    }
  }
}

/// Logits that rise by more than f32 holds as a weight are worked out again, and raise the running
/// maximum: the next tile, 10 below, is left out.
TEST(LateDecisions, RaiseTheRunningMaximumByScoresToo) {
  for (const Subject& subject : late_subjects("skip-softmax")) {
    Problem problem = make_problem(subject, shape_of(1, 1, 1, 130, 400), 7);
    set_logits(problem.variant.problem,
               [](int k) { return k >= 256 ? 0.0 : (k >= 192 ? 200.0 : 190.0); });
    close_below_gap(-5, problem.variant);
    expect_the_mask_of_reports(subject, problem, kPlain);
  }
}

/// A test of gates in which nothing is gated, or everything, shows nothing.
TEST(Gates, SkipSomethingAndNotEverything) {
  for (const Subject& subject : subjects()) {
    std::int64_t visited = 0, gated = 0;
    for (std::uint32_t seed = 11; seed < 20 && gated == 0; ++seed) {
      const Problem problem = make_problem(subject, shape_of(1, 2, 1, 300, 300), seed);
      if (!problem.variant.gate || subject.contract.takes_order) break;  // an order evens tiles out
      const Reported got = run(subject, problem, kPlain);
      ASSERT_EQ(got.error, "") << subject.name;
      for (std::size_t x = 0; x < got.counts.size(); x += 3)
        visited += got.counts[x + 1], gated += got.counts[x + 2];
    }
    if (visited == 0) continue;  // no gate
    EXPECT_GT(gated, 0) << subject.name;
    EXPECT_LT(gated, visited) << subject.name;
  }
}

}  // namespace
}  // namespace lacuna::device
