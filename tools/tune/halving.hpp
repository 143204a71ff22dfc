// Successive halving: all candidates are measured a little, the better third again and longer,
// until few are left. Pure: measuring, remembering and the clock are the caller's.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tune/best_of.hpp"

namespace lacuna::tune {

/// Times of a few launches, or why there are none.
struct Sample {
  TuningStatus status = TuningStatus::kOk;
  std::string detail;
  std::vector<double> times_us;
};

/// All callbacks are called on the calling thread; `sample` and `keep` for one candidate at a time.
struct Halving {
  /// Samples of each candidate in each rung.
  std::vector<int> turns = {3, 6, 15};
  /// Measure the first rung in turns, too: fairer, but no result is kept before the whole rung has
  /// been measured.
  bool first_in_turns = false;
  /// One turn; nothing if it was interrupted, which is not held against the candidate.
  std::function<std::optional<Sample>(int id)> sample;
  /// A result of this rung or a later one from an earlier search; it is not measured again.
  std::function<std::optional<Result>(int id, int rung)> known;
  std::function<void(const Result&)> keep;  ///< a new result, as soon as it is there
  /// false: the rest of this rung is not measured; the results so far count.
  std::function<bool(int rung)> may_go_on;
};

struct Outcome {
  std::vector<Result> results;  ///< the last of each candidate that has one, in the given order
  std::optional<Result> best;   ///< none if nothing is ok
  bool complete = false;        ///< no rung was cut short
  std::vector<int> unmeasured;  ///< for want of time
};

/// Tries `ids` in this order. The first one always reaches the last rung, so that the best is
/// measured beside it.
Outcome halve(std::span<const int> ids, const Halving& halving);

/// Median and (90 % - 10 %) / median.
void summarise(std::vector<double> times_us, Result& result);

}  // namespace lacuna::tune
