#include "tools/calibrate/param/bisection.hpp"

#include <algorithm>

namespace lacuna::calibrate {
namespace {

constexpr double kNearest = 1.0 / (1 << kBisections);

std::vector<double> values_of(const std::vector<Setting>& groups) {
  std::vector<double> values;
  values.reserve(groups.size());
  for (const Setting& group : groups) values.push_back(group.value);
  return values;
}

/// The share of the way that is within the bound, and one that is not.
struct Bracket {
  double within = 0, beyond = 1;
  bool open = true;  ///< there is something left to find
};

/// The middle of a bracket, past shares whose value, a whole number, has been tried; nothing where
/// the sides are near enough.
std::optional<double> next_share(const Scale& scale, Bracket& bracket) {
  while (bracket.beyond - bracket.within > kNearest) {
    const double middle = (bracket.within + bracket.beyond) / 2;
    const double value = scale.at(middle);
    if (value == scale.at(bracket.within))
      bracket.within = middle;
    else if (value == scale.at(bracket.beyond))
      bracket.beyond = middle;
    else
      return middle;
  }
  return std::nullopt;
}

}  // namespace

Found bisect(const Scale& scale, std::vector<Setting> start, double bound,
             const Evaluate& evaluate) {
  Found found{std::move(start), true};
  std::vector<Bracket> brackets(found.groups.size());
  for (std::size_t g = 0; g < brackets.size(); ++g)
    brackets[g].open = found.groups[g].reached.error <= bound;
  for (bool first = true;; first = false) {
    std::vector<double> values = values_of(found.groups);
    std::vector<double> shares(values.size(), 1);
    bool any = false;
    for (std::size_t g = 0; g < values.size(); ++g) {
      if (!brackets[g].open) continue;
      const auto share = first ? std::optional(1.0) : next_share(scale, brackets[g]);
      brackets[g].open = share.has_value();
      if (!share) continue;
      shares[g] = *share;
      values[g] = scale.at(*share);
      any = true;
    }
    if (!any) return found;
    const auto reached = evaluate(values);
    if (!reached) return {std::move(found.groups), false};
    for (std::size_t g = 0; g < values.size(); ++g) {
      Bracket& bracket = brackets[g];
      if (!bracket.open) continue;
      if ((*reached)[g].error <= bound) {
        found.groups[g].value = values[g];
        found.groups[g].reached = (*reached)[g];
        bracket.within = shares[g];
        bracket.open = shares[g] < 1;
      } else {
        bracket.beyond = shares[g];
      }
    }
  }
}

Found search_grid(const Scale& scale, const std::vector<double>& beside,
                  const std::vector<Setting>& start, double bound, const EvaluateBeside& evaluate) {
  Found best{start, true};
  for (const double other : beside) {
    const Found found = bisect(scale, start, bound, [&](const std::vector<double>& values) {
      return evaluate(other, values);
    });
    for (std::size_t g = 0; g < start.size(); ++g) {
      if (!(found.groups[g].reached.density < best.groups[g].reached.density)) continue;
      best.groups[g] = found.groups[g];
      best.groups[g].beside = other;
    }
    if (!found.complete) return {std::move(best.groups), false};
  }
  return best;
}

Found first_within(const std::vector<double>& values, std::vector<Setting> start, double bound,
                   const Evaluate& evaluate) {
  Found found{std::move(start), true};
  std::vector<bool> open;
  for (const Setting& group : found.groups) open.push_back(group.reached.error <= bound);
  for (const double value : values) {
    if (std::none_of(open.begin(), open.end(), [](bool is_open) { return is_open; })) break;
    std::vector<double> tried = values_of(found.groups);
    for (std::size_t g = 0; g < tried.size(); ++g)
      if (open[g]) tried[g] = value;
    const auto reached = evaluate(tried);
    if (!reached) return {std::move(found.groups), false};
    for (std::size_t g = 0; g < tried.size(); ++g) {
      if (!open[g] || !((*reached)[g].error <= bound)) continue;
      found.groups[g].value = value;
      found.groups[g].reached = (*reached)[g];
      open[g] = false;
    }
  }
  return found;
}

}  // namespace lacuna::calibrate
