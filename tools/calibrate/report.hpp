// What `calibrate` says: a line for each head for people, a document for programs.
#pragma once

#include <string>

#include "tools/calibrate/search.hpp"

namespace lacuna::tools {

struct CalibrateReport {
  const Calibration& calibration;
  const SearchResult& search;
  std::string device;
  std::string out;  ///< empty: nothing was written
  std::size_t launches = 0;
};

void report_calibration(const CalibrateReport& report, Session& session);

/// Why nothing was found: even everything is not near enough to dense attention.
std::string unreachable_message(double target, double least_error, bool quantised);

}  // namespace lacuna::tools
