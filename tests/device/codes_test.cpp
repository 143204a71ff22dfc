// Keys and values of e4m3 in batches of one length, on emulated blocks; sequences and pages are in
// sequences_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/runner.hpp"
#include "tests/numerics/harness/codes/uniform_codes.hpp"
#include "tests/tier.hpp"

namespace lacuna::device {
namespace {

using numerics::Scales;

const emulation::Schedule kCodesEarly = {emulation::Landing::kEarly,
                                         emulation::WarpOrder::kAscending, 0};
const emulation::Schedule kCodesLate = {emulation::Landing::kLate, emulation::WarpOrder::kShuffled,
                                        7};

numerics::Case codes_case(int n_b, int n_h, int n_h_kv, int n_q, int n_k) {
  numerics::Case c;
  c.n_b = n_b, c.n_h = n_h, c.n_h_kv = n_h_kv, c.n_q = n_q, c.n_k = n_k;
  return c;
}

void expect_right(const Subject& subject, const numerics::Case& shape, Scales kind,
                  const emulation::Schedule& schedule) {
  SCOPED_TRACE(testing::Message() << subject.name << ", scales " << static_cast<int>(kind));
  Problem problem = make_problem(subject, shape, 43);
  const numerics::UniformCodes codes(problem.shape, kind, problem.variant.problem);
  numerics::Binding binding(false, problem.shape, problem.variant);
  codes.bind(binding, problem.shape);
  EXPECT_EQ(check_variant(problem.shape, problem.variant, run(subject, binding, schedule), true),
            "")
      << problem.shape.text();
}

TEST(Codes, TheWgmmaFamilyHasProducersThatConvert) {
  for (const char* spec : {"dense", "flash-decoding"}) {
    EXPECT_TRUE(std::ranges::any_of(coded_subjects(), [&](const Subject& subject) {
      return subject.spec == spec && subject.name.ends_with("sm_90a_e4m3");
    })) << spec;
  }
}

/// Scales of all kinds; rows that end within a tile; more work tiles than blocks.
TEST(Codes, AreNumbersByTheirScales) {
  for (const Subject& subject : coded_subjects()) {
    numerics::Case c = codes_case(2, 4, 2, 161, 275);
    expect_right(subject, c, Scales::kNone, kCodesEarly);
    c.token_major = true, c.fill = numerics::Fill::kUneven;
    expect_right(subject, c, Scales::kOfEntriesAndHeads, kCodesLate);
    if (!test::by_tier(true, false)) continue;
    expect_right(subject, c, Scales::kOfTensor, kCodesEarly);
    expect_right(subject, c, Scales::kOfHeads, kCodesLate);
  }
}

/// Rows of one step and of none: places pass from row to row.
TEST(Codes, ShortRows) {
  for (const Subject& subject : coded_subjects()) {
    expect_right(subject, codes_case(1, 6, 3, 300, 40), Scales::kOfHeads, kCodesLate);
    expect_right(subject, codes_case(2, 2, 1, 5, 1), Scales::kOfTensor, kCodesEarly);
  }
}

/// Logits that outgrow what came before: steps are worked out again, from codes in global memory.
TEST(Codes, ValuesOfAllKinds) {
  using numerics::Fill;
  for (const Fill fill : {Fill::kHuge, Fill::kRising, Fill::kSharp}) {
    for (const Subject& subject : coded_subjects()) {
      numerics::Case c = codes_case(1, 4, 2, 70, 330);
      c.fill = fill;
      if (subject.head_dim <= 128) expect_right(subject, c, Scales::kOfHeads, kCodesLate);
    }
  }
}

/// Each warp that converts, and one that computes, lags far behind the others.
TEST(Codes, AWarpThatLagsIsNotOvertaken) {
  for (const Subject& subject : coded_subjects()) {
    if (subject.spec != "dense" || subject.name.find("sm_90a") == std::string::npos) continue;
    for (const std::uint32_t warp : {0U, 8U, 9U, 10U, 11U})
      expect_right(subject, codes_case(1, 4, 1, 130, 400), Scales::kOfHeads,
                   {emulation::Landing::kLate, emulation::WarpOrder::kStarved, warp});
  }
}

}  // namespace
}  // namespace lacuna::device
