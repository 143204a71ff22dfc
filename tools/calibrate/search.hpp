// The calibration of a spec: its parameters one after the other, each by the procedure that the
// spec names, on launches of a Trial. From samples to a Calibration; files and words are elsewhere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/calibrate/kept.hpp"
#include "tools/calibrate/param/sought_param.hpp"
#include "tools/calibrate/progress.hpp"
#include "tools/calibrate/trial.hpp"

namespace lacuna::tools {

struct SearchOptions {
  double target = 0.05;      ///< relative L1 of each head on each sample
  bool one_for_all = false;  ///< heads share one number even where each could have its own
  std::vector<int> kept;     ///< numbers of kept tiles to try; empty: from 1 up, all that differ
};

struct SearchResult {
  std::vector<SoughtParam> params;
  std::vector<KeptTable> tables;
  std::map<std::string, Array> kept_params;  ///< "NAME.kept_16"
  double least_error = 0;   ///< of the best group of heads, with everything computed
  std::vector<bool> dense;  ///< heads with every parameter at its dense end
  bool complete = true;
};

/// `fitted`: how many of the trial's samples, the first ones, are searched on. Where least_error is
/// above the target no head has left its dense end. nullopt: stopped before anything was known.
std::optional<SearchResult> search_params(Trial& trial, std::size_t fitted,
                                          const SpecDocument& document,
                                          const SearchOptions& options,
                                          CalibrateProgress& progress);

/// How many launches a search takes at most.
std::size_t count_launches(const SpecDocument& document, std::size_t fitted, std::size_t tables);

/// The numbers of kept tiles that are tried where none are given, for rows of so many tiles.
std::vector<int> usual_kept(std::int64_t k_tiles);

}  // namespace lacuna::tools
