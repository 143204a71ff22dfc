// What the short tier leaves out of a matrix, and what it may not.
#include "tests/tier.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace lacuna::test {
namespace {

/// Three properties of 4, 3 and 3 values, without the last of all.
std::vector<Properties> matrix() {
  std::vector<Properties> cases;
  for (const char* spec : {"dense", "bsfa", "sale", "sparge"})
    for (const char* dtype : {"bf16", "f16", "f32"})
      for (const char* d : {"64", "128", "256"})
        if (std::string(spec) != "sparge" || std::string(d) != "256")
          cases.push_back({spec, dtype, d});
  return cases;
}

std::set<std::string> pairs_of(const std::vector<Properties>& cases) {
  std::set<std::string> pairs;
  for (const Properties& c : cases) {
    pairs.insert({c[0] + c[1], c[0] + c[2], c[1] + c[2]});
  }
  return pairs;
}

std::vector<Properties> chosen_of(const std::vector<Properties>& cases, int strength) {
  std::vector<Properties> chosen;
  for (const std::size_t n : covering(cases, strength)) chosen.push_back(cases[n]);
  return chosen;
}

TEST(Covering, KeepsEveryPairInAFewCases) {
  const std::vector<Properties> chosen = chosen_of(matrix(), 2);
  EXPECT_EQ(pairs_of(chosen), pairs_of(matrix()));
  EXPECT_LE(chosen.size(), 14u);
}

TEST(Covering, KeepsEveryValueInFewer) { EXPECT_EQ(chosen_of(matrix(), 1).size(), 4u); }

TEST(Covering, TellsPropertiesOfTheSameValueApart) {
  const std::vector<Properties> cases = {{"64", "128"}, {"128", "64"}, {"64", "64"}};
  EXPECT_EQ(covering(cases, 2).size(), 3u);
  EXPECT_EQ(covering(cases, 1).size(), 2u);
}

TEST(Covering, TakesPartsInAnyNumber) {
  const std::vector<std::vector<std::string>> parts = {{"b"}, {"a", "b"}, {"c"}, {}, {"c", "a"}};
  EXPECT_EQ(covering(parts), (std::vector<std::size_t>{1, 2}));
}

TEST(Tier, IsWholeUnlessShortIsAskedFor) {
  const char* before = std::getenv("LACUNA_TEST_TIER");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("LACUNA_TEST_TIER", "short", 1);
  EXPECT_EQ(by_tier(3, 1), 1);
  ::setenv("LACUNA_TEST_TIER", "all", 1);
  EXPECT_EQ(by_tier(3, 1), 3);
  ::unsetenv("LACUNA_TEST_TIER");
  EXPECT_EQ(by_tier(3, 1), 3);
  if (!kept.empty()) ::setenv("LACUNA_TEST_TIER", kept.c_str(), 1);
}

}  // namespace
}  // namespace lacuna::test
