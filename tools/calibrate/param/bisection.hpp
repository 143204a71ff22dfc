// The searches of calibration: one number for each group of heads, the sparsest whose error stays
// within a bound. All groups are searched at once: an evaluation launches every head, each with the
// number of its group. Nothing here knows of tensors, launches or files.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/calibrate/param/scale.hpp"

namespace lacuna::calibrate {

/// What a group reached: the error of its worst head and sample, and the share of visible tiles
/// that are computed.
struct Reached {
  double error = 0;  ///< NaN is within no bound
  double density = 1;
  bool operator==(const Reached&) const = default;
};

/// What all groups reach with these numbers, one for each; nullopt: stop now.
using Evaluate = std::function<std::optional<std::vector<Reached>>(const std::vector<double>&)>;

struct Setting {
  double value = 0;
  double beside = 0;  ///< of search_grid: the value of the other parameter
  Reached reached;    ///< measured with this value
  bool operator==(const Setting&) const = default;
};

/// The best settings known; each was measured within the bound, or is the one a group began with.
struct Found {
  std::vector<Setting> groups;
  bool complete = true;  ///< false: stopped; what is here is still good
};

/// Launches of one bisection; they narrow its interval to 2^-12 of what it was.
inline constexpr int kBisections = 12;

/// Halves the way between the sparsest value within `bound` and the densest one beyond it, after
/// trying the sparse end itself. `start` has the dense end with what was measured there; groups
/// that are beyond the bound even so keep it. The error should not fall as values get sparser;
/// where it does, the result is still within the bound, but need not be the sparsest.
Found bisect(const Scale& scale, std::vector<Setting> start, double bound,
             const Evaluate& evaluate);

/// What all groups reach with these numbers while the other parameter has that one.
using EvaluateBeside = std::function<std::optional<std::vector<Reached>>(
    double beside, const std::vector<double>& values)>;

/// One bisection for each value of the other parameter; each group keeps its least dense result.
Found search_grid(const Scale& scale, const std::vector<double>& beside,
                  const std::vector<Setting>& start, double bound, const EvaluateBeside& evaluate);

/// The first of `values`, sparsest first, that is within the bound. Every value is measured for
/// groups that have found none; `start` as for bisect.
Found first_within(const std::vector<double>& values, std::vector<Setting> start, double bound,
                   const Evaluate& evaluate);

}  // namespace lacuna::calibrate
