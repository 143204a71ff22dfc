// The searches of calibration on functions whose answer is known: monotone, noisy, unreachable.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/calibrate/param/bisection.hpp"
#include "tools/calibrate/param/kept_tiles.hpp"

namespace lacuna::calibrate {
namespace {

constexpr double kThresholdInfinity = std::numeric_limits<double>::infinity();

/// Groups at the dense end, without error.
std::vector<Setting> dense_start(const Scale& scale, std::size_t groups) {
  return std::vector<Setting>(groups, {.value = scale.at(0), .beside = 0, .reached = {0, 1}});
}

TEST(CalibrateScale, ReachesBothEndsExactlyAndRisesBetweenThem) {
  for (const Scale& scale :
       {Scale{0, 1, 1}, Scale{1, -1, 1}, Scale{0, kThresholdInfinity, 0.5},
        Scale{kThresholdInfinity, 3, 7}, Scale{-kThresholdInfinity, kThresholdInfinity, 1},
        Scale{-kThresholdInfinity, 0, -10}}) {
    EXPECT_EQ(scale.at(0), scale.dense);
    EXPECT_EQ(scale.at(1), scale.sparse);
    const double direction = scale.sparse > scale.dense ? 1 : -1;
    double before = scale.dense;
    for (int step = 1; step <= 64; ++step) {
      const double value = scale.at(step / 64.0);
      EXPECT_GT(direction * (value - before), 0) << scale.dense << " " << scale.sparse;
      before = value;
    }
  }
}

TEST(CalibrateScale, RoundsWholeNumbersAndEndsAtTheLargestOne) {
  const Scale scale{kThresholdInfinity, 0, 32, true};
  EXPECT_EQ(scale.at(0), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(scale.at(1), 0);
  EXPECT_EQ(scale.at(0.5), 32);
  EXPECT_EQ(scale.at(0.55), std::nearbyint(scale.at(0.55)));
}

TEST(CalibrateBisect, FindsTheSparsestValueOfEveryGroupAtOnce) {
  const Scale scale{0, 1, 1};
  const std::vector<double> slopes{0.06, 0.1, 0.4, 5};
  int launches = 0;
  const Found found =
      bisect(scale, dense_start(scale, 4), 0.05, [&](const std::vector<double>& values) {
        ++launches;
        std::vector<Reached> reached;
        for (std::size_t g = 0; g < 4; ++g)
          reached.push_back({slopes[g] * values[g], 1 - values[g]});
        return std::optional(reached);
      });
  EXPECT_TRUE(found.complete);
  EXPECT_LE(launches, kBisections + 1);
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_LE(found.groups[g].reached.error, 0.05);
    EXPECT_NEAR(found.groups[g].value, 0.05 / slopes[g], 1.0 / (1 << kBisections));
  }
}

TEST(CalibrateBisect, TakesTheSparseEndWhereItIsWithinTheBound) {
  const Scale scale{0, kThresholdInfinity, 1};
  const Found found = bisect(scale, dense_start(scale, 1), 0.05, [](const std::vector<double>&) {
    return std::optional(std::vector<Reached>{{0.01, 0.1}});
  });
  EXPECT_EQ(found.groups[0].value, kThresholdInfinity);
}

TEST(CalibrateBisect, LeavesAGroupDenseThatIsBeyondTheBoundEvenSo) {
  const Scale scale{1, 0, 1};
  std::vector<Setting> start = dense_start(scale, 2);
  start[0].reached.error = 0.06;
  const Found found = bisect(scale, start, 0.05, [](const std::vector<double>& values) {
    EXPECT_EQ(values[0], 1);
    return std::optional(std::vector<Reached>{{0.06, 1}, {0.1 * (1 - values[1]), values[1]}});
  });
  EXPECT_EQ(found.groups[0], start[0]);
  EXPECT_NEAR(found.groups[1].value, 0.5, 1e-3);
}

TEST(CalibrateBisect, WholeNumbersAreFoundExactly) {
  const Scale scale{kThresholdInfinity, 0, 32, true};
  for (const double needed : {1.0, 7.0, 20.0, 31.0, 33.0, 100.0}) {
    const Found found =
        bisect(scale, dense_start(scale, 1), 0.05, [needed](const std::vector<double>& values) {
          return std::optional(
              std::vector<Reached>{{values[0] >= needed ? 0.04 : 0.06, values[0] / 1000}});
        });
    EXPECT_EQ(found.groups[0].value, needed);
  }
}

TEST(CalibrateBisect, WhatItReturnsWasMeasuredWithinTheBoundWhateverTheNoise) {
  const Scale scale{0, 1, 1};
  for (int seed = 0; seed < 50; ++seed) {
    const auto error = [seed](double value) {
      return 0.1 * value + 0.02 * std::sin(seed + 1000 * value);
    };
    const Found found =
        bisect(scale, dense_start(scale, 1), 0.05, [&](const std::vector<double>& values) {
          return std::optional(std::vector<Reached>{{error(values[0]), 1 - values[0]}});
        });
    EXPECT_LE(error(found.groups[0].value), 0.05);
    EXPECT_EQ(found.groups[0].reached.error, error(found.groups[0].value));
    EXPECT_GT(found.groups[0].value, 0.25) << "seed " << seed;
  }
}

TEST(CalibrateBisect, NotANumberIsBeyondEveryBound) {
  const Scale scale{0, 1, 1};
  const Found found =
      bisect(scale, dense_start(scale, 1), 0.05, [](const std::vector<double>& values) {
        const double error = values[0] > 0.25 ? std::nan("") : 0.01;
        return std::optional(std::vector<Reached>{{error, 1 - values[0]}});
      });
  EXPECT_NEAR(found.groups[0].value, 0.25, 1e-3);
}

TEST(CalibrateBisect, StoppedItKeepsTheBestSoFar) {
  const Scale scale{0, 1, 1};
  int left = 4;
  const Found found =
      bisect(scale, dense_start(scale, 1), 0.05,
             [&](const std::vector<double>& values) -> std::optional<std::vector<Reached>> {
               if (left-- == 0) return std::nullopt;
               return std::vector<Reached>{{0.06 * values[0], 1 - values[0]}};
             });
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.groups[0].value, 0.75) << "after 1 (beyond), 1/2, 3/4 and 7/8 (beyond)";
  EXPECT_LE(found.groups[0].reached.error, 0.05);
}

TEST(CalibrateGrid, EachGroupTakesThePairThatComputesLeast) {
  const Scale scale{0, 1, 1};
  // The first group is sparser beside 0.25, the second beside 0.75.
  const std::vector<double> best{0.25, 0.75};
  const Found found = search_grid(
      scale, {0.25, 0.5, 0.75}, dense_start(scale, 2), 0.05,
      [&](double beside, const std::vector<double>& values) {
        std::vector<Reached> reached;
        for (std::size_t g = 0; g < 2; ++g)
          reached.push_back({values[g] * (0.1 + std::fabs(beside - best[g])), 1 - values[g]});
        return std::optional(reached);
      });
  for (std::size_t g = 0; g < 2; ++g) {
    EXPECT_EQ(found.groups[g].beside, best[g]);
    EXPECT_NEAR(found.groups[g].value, 0.5, 1e-3);
  }
}

TEST(CalibrateFirstWithin, GoesDownTheValuesUntilEachGroupIsWithin) {
  const std::vector<double> values{8, 4, 2, 1};
  std::vector<Setting> start(3, {.value = 0, .beside = 0, .reached = {0, 1}});
  const Found found = first_within(values, start, 0.05, [](const std::vector<double>& tried) {
    return std::optional(std::vector<Reached>{
        {0.01 * tried[0], 0.5}, {0.02 * tried[1], 0.5}, {tried[2] > 0 ? 1.0 : 0.0, 0.5}});
  });
  EXPECT_EQ(found.groups[0].value, 4);
  EXPECT_EQ(found.groups[1].value, 2);
  EXPECT_EQ(found.groups[2], start[2]) << "none is within: it stays as it began";
}

/// Rows of tile maxima; -inf is a tile that is not there, NaN one that is exempt.
class Maxima {
 public:
  explicit Maxima(std::vector<std::vector<double>> rows) : rows_(std::move(rows)) {}
  std::optional<std::vector<std::uint8_t>> probe(const std::vector<double>& thresholds) {
    ++launches;
    std::vector<std::uint8_t> codes;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      for (const double maximum : rows_[row])
        codes.push_back(maximum == -kThresholdInfinity ? 0 : maximum < thresholds[row] ? 2 : 1);
    return codes;
  }
  int launches = 0;

 private:
  std::vector<std::vector<double>> rows_;
};

TEST(CalibrateKeptTiles, ThresholdsLieBetweenTheKthAndTheNextMaximum) {
  const double exempt = std::nan("");
  Maxima maxima(
      {{3, -1, 12.5, 7, exempt}, {0.25, 0.5, -40, 2, 1}, {5, -kThresholdInfinity, exempt, 4, 3}});
  KeptTiles tiles(Scale{-kThresholdInfinity, kThresholdInfinity, 1}, 3, 5,
                  [&](const std::vector<double>& t) { return maxima.probe(t); });
  const auto two = tiles.thresholds(2);
  ASSERT_TRUE(two.has_value());
  EXPECT_NEAR((*two)[0], 5, 0.02);  // (7 + 3) / 2
  EXPECT_NEAR((*two)[1], 0.75, 0.01);
  EXPECT_NEAR((*two)[2], 3.5, 0.02);
  EXPECT_LE(maxima.launches, 31);
  EXPECT_EQ(tiles.count(0, 2).kept, 3) << "two, and the exempt one";
  EXPECT_EQ(tiles.count(0, 2).visible, 5);
  const int before = maxima.launches;
  const auto four = tiles.thresholds(4);
  ASSERT_TRUE(four.has_value());
  EXPECT_EQ((*four)[0], -kThresholdInfinity) << "only four can be gated";
  EXPECT_NEAR((*four)[1], (0.25 - 40) / 2, 0.1);
  EXPECT_EQ((*four)[2], -kThresholdInfinity);
  EXPECT_LT(maxima.launches - before, 29) << "what is known of the maxima is kept";
}

TEST(CalibrateKeptTiles, StopsWhenAsked) {
  KeptTiles tiles(Scale{-kThresholdInfinity, kThresholdInfinity, 1}, 1, 2,
                  [](const std::vector<double>&) { return std::nullopt; });
  EXPECT_FALSE(tiles.thresholds(1).has_value());
}

}  // namespace
}  // namespace lacuna::calibrate
