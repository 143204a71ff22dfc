// Results of measured candidates, and which of them is the best: for the search, and for a lookup
// among its records.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cache/tuning/tuning.hpp"

namespace lacuna::tune {

using cache::TuningStatus;

/// What is known of a candidate after a rung.
struct Result {
  int id = 0;
  TuningStatus status = TuningStatus::kOk;
  std::string detail;
  int rung = 0;
  double median_us = 0, spread = 0;
};

/// The fastest that is ok; among those within 2 % of it, the lowest id.
std::optional<Result> best_of(std::span<const Result> results);

}  // namespace lacuna::tune
