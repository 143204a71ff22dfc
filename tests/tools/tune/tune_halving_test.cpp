// Successive halving over made-up times: who is measured how long, and who wins.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tools/tune/halving.hpp"

namespace lacuna::tune {
namespace {

/// Candidates whose launches always take `time_us[id]`.
struct Field {
  std::vector<double> time_us;
  std::map<int, Sample> failing{};
  std::map<int, Result> database{};
  int samples_left = 1000000;
  std::vector<int> order{};  ///< of samples
  std::vector<Result> kept{};

  std::vector<int> ids() const {
    std::vector<int> all(time_us.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  Halving halving() {
    Halving h;
    h.turns = {1, 2, 4};
    h.sample = [this](int id) -> std::optional<Sample> {
      --samples_left;
      order.push_back(id);
      if (const auto fails = failing.find(id); fails != failing.end()) return fails->second;
      return Sample{TuningStatus::kOk, "", {time_us[static_cast<std::size_t>(id)]}};
    };
    h.known = [this](int id, int rung) -> std::optional<Result> {
      const auto found = database.find(id);
      if (found == database.end() || found->second.rung < rung) return std::nullopt;
      return found->second;
    };
    h.keep = [this](const Result& result) {
      kept.push_back(result);
      database[result.id] = result;
    };
    h.may_go_on = [this](int) { return samples_left > 0; };
    return h;
  }
};

TEST(Halving, FindsTheFastestAndMeasuresItLongest) {
  Field field{{100, 90, 80, 70, 60, 50, 40, 30, 20, 10}};
  const Outcome outcome = halve(field.ids(), field.halving());
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->id, 9);
  EXPECT_EQ(outcome.best->rung, 2);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.results.size(), 10u);
  EXPECT_EQ(std::ranges::count(field.order, 9), 1 + 2 + 4);
  EXPECT_EQ(std::ranges::count(field.order, 1), 1);
  EXPECT_EQ(std::ranges::count(field.order, 0), 1 + 2 + 4) << "the usual one is never left behind";
}

TEST(Halving, ATieGoesToTheLowestId) {
  Field field{{100, 98.1, 98.5, 99.9}};
  EXPECT_EQ(halve(field.ids(), field.halving()).best->id, 0);
  field = {{100, 97.0, 96.0, 95.5}};
  EXPECT_EQ(halve(field.ids(), field.halving()).best->id, 1) << "97 is within 2 % of 95.5";
}

TEST(Halving, LaterRungsGoRoundInTurns) {
  Field field{{3, 2, 1}};
  halve(field.ids(), field.halving());
  EXPECT_EQ(field.order,
            (std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(Halving, TheFirstRungCanGoRoundInTurns) {
  Field field{{3, 2, 1}};
  Halving halving = field.halving();
  halving.turns = {2};
  halving.first_in_turns = true;
  EXPECT_EQ(halve(field.ids(), halving).best->id, 2);
  EXPECT_EQ(field.order, (std::vector{0, 1, 2, 0, 1, 2}));
}

TEST(Halving, FailuresAreKeptWithTheirReasonAndNeverWin) {
  Field field{{5, 1, 2}};
  field.failing[1] = {TuningStatus::kCrash, "ended by signal 11", {}};
  const Outcome outcome = halve(field.ids(), field.halving());
  EXPECT_EQ(outcome.best->id, 2);
  EXPECT_TRUE(outcome.complete);
  ASSERT_EQ(outcome.results.size(), 3u);
  EXPECT_EQ(outcome.results[1].status, TuningStatus::kCrash);
  EXPECT_EQ(outcome.results[1].detail, "ended by signal 11");
  EXPECT_EQ(std::ranges::count(field.order, 1), 1);
  field.failing[0] = field.failing[2] = field.failing[1];
  field.database.clear();
  EXPECT_FALSE(halve(field.ids(), field.halving()).best);
}

TEST(Halving, WhatIsKnownIsNotMeasuredAgain) {
  Field field{{4, 3, 2, 1}};
  const Outcome first = halve(field.ids(), field.halving());
  field.order.clear();
  field.kept.clear();
  const Outcome second = halve(field.ids(), field.halving());
  EXPECT_EQ(field.order, std::vector<int>());
  EXPECT_EQ(field.kept.size(), 0u);
  EXPECT_EQ(second.best->id, first.best->id);
}

TEST(Halving, AStoppedSearchKeepsAllItHasAndGoesOnThere) {
  Field field{{6, 5, 4, 3, 2, 1}};
  field.samples_left = 3;
  const Outcome stopped = halve(field.ids(), field.halving());
  EXPECT_FALSE(stopped.complete);
  EXPECT_EQ(stopped.unmeasured, (std::vector{3, 4, 5}));
  EXPECT_EQ(stopped.best->id, 2);
  EXPECT_EQ(field.kept.size(), 3u);
  field.samples_left = 1000;
  field.order.clear();
  const Outcome resumed = halve(field.ids(), field.halving());
  EXPECT_EQ(resumed.best->id, 5);
  EXPECT_EQ(field.order.front(), 3) << "the first three are known";
}

TEST(Halving, PartOfALaterRungDoesNotDecide) {
  Field field{{5, 4, 3, 2}};
  field.samples_left = 4 + 1;  // one sample of the second rung: the slowest
  const Outcome outcome = halve(field.ids(), field.halving());
  EXPECT_FALSE(outcome.complete);
  EXPECT_EQ(outcome.best->id, 3);
}

TEST(Halving, ASampleThatIsBrokenOffSaysNothing) {
  Field field{{2, 1}};
  Halving halving = field.halving();
  halving.sample = [](int) { return std::nullopt; };
  const Outcome outcome = halve(field.ids(), halving);
  EXPECT_FALSE(outcome.best);
  EXPECT_EQ(outcome.unmeasured.size(), 2u);
  EXPECT_EQ(field.kept.size(), 0u);
}

TEST(Halving, MedianAndSpreadOfSamples) {
  Result result;
  summarise({5, 1, 2, 4, 3, 6, 7, 8, 9, 10, 11}, result);
  EXPECT_EQ(result.median_us, 6);
  EXPECT_EQ(result.spread, (10.0 - 2.0) / 6.0);
}

}  // namespace
}  // namespace lacuna::tune
