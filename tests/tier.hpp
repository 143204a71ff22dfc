// Which cases of a matrix run: all of them, or with LACUNA_TEST_TIER=short (`tools/start test`) a
// sample in which every pair of properties occurs that occurs in the whole.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lacuna::test {

/// LACUNA_TEST_TIER: `short`, or `all`, which is also what a test started by hand runs.
bool is_short_tier();

/// `whole`, or in the short tier `sample`.
template <class T>
T by_tier(T whole, T sample) {
  return is_short_tier() ? std::move(sample) : std::move(whole);
}

/// How often a test of random cases draws one: `whole`, or in the short tier under sanitizers a
/// tenth of it. Those look at memory and at how operations are defined; what comes out is asked in
/// the release.
int draws(int whole);

/// What a case is made of, one value for each property: {"bsfa", "bf16", "d64"}.
using Properties = std::vector<std::string>;

/// The indices, ascending, of cases in which all values of two properties meet that meet in
/// `cases`; with `strength` 1 all values of each property. Greedy, and the same for the same cases.
std::vector<std::size_t> covering(const std::vector<Properties>& cases, int strength);

/// The same for what each case covers by name, in any number.
std::vector<std::size_t> covering(const std::vector<std::vector<std::string>>& covers);

/// All cases, or in the short tier those that cover the properties.
template <class Case, class PropertiesOf>
std::vector<Case> in_tier(std::vector<Case> cases, PropertiesOf properties_of, int strength = 2) {
  if (!is_short_tier()) return cases;
  std::vector<Properties> properties;
  for (const Case& c : cases) properties.push_back(properties_of(c));
  std::vector<Case> chosen;
  for (const std::size_t n : covering(properties, strength)) chosen.push_back(cases[n]);
  return chosen;
}

}  // namespace lacuna::test
