#include "tests/tier.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

namespace lacuna::test {
namespace {

/// What a case covers: values of one property, or of two.
std::vector<std::string> covered_by(const Properties& properties, int strength) {
  std::vector<std::string> covered;
  for (std::size_t a = 0; a < properties.size(); ++a) {
    const std::string first = std::to_string(a) + "=" + properties[a];
    if (strength == 1) covered.push_back(first);
    for (std::size_t b = a + 1; strength == 2 && b < properties.size(); ++b)
      covered.push_back(first + "," + std::to_string(b) + "=" + properties[b]);
  }
  return covered;
}

}  // namespace

bool is_short_tier() {
  const char* tier = std::getenv("LACUNA_TEST_TIER");
  return tier != nullptr && std::string_view(tier) == "short";
}

int draws(int whole) {
#ifdef LACUNA_IS_SANITIZED
  return is_short_tier() ? (whole + 9) / 10 : whole;
#else
  return whole;
#endif
}

std::vector<std::size_t> covering(const std::vector<Properties>& cases, int strength) {
  std::vector<std::vector<std::string>> covers;
  for (const Properties& properties : cases) covers.push_back(covered_by(properties, strength));
  return covering(covers);
}

std::vector<std::size_t> covering(const std::vector<std::vector<std::string>>& covers) {
  std::set<std::string> open;
  for (const auto& covered : covers) open.insert(covered.begin(), covered.end());
  std::vector<std::size_t> chosen;
  while (!open.empty()) {
    std::size_t best = 0;
    std::ptrdiff_t most = 0;
    for (std::size_t n = 0; n < covers.size(); ++n) {
      const auto gain = std::ranges::count_if(
          covers[n], [&](const std::string& item) { return open.contains(item); });
      if (gain > most) best = n, most = gain;
    }
    chosen.push_back(best);
    for (const std::string& item : covers[best]) open.erase(item);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace lacuna::test
