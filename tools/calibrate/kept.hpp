// The procedure "kept_tiles": thresholds for each head and query tile. Part of search_params.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/calibrate/param/sought_param.hpp"

namespace lacuna::tools {

struct SearchState;

/// What thresholds for k kept tiles reach, all heads and samples together.
struct KeptTable {
  int kept = 0;
  double predicted = 0, measured = 0;  ///< density
  double rel_l1 = 0;                   ///< of the worst head and sample
};

struct KeptSearch {
  std::vector<KeptTable> tables;
  std::map<std::string, Array> params;  ///< "NAME.kept_16"
  bool complete = true;  ///< false: stopped; the groups that have found none stay dense
};

/// For each number of tiles in `kept` a table of thresholds, averaged over samples; each group then
/// takes the table with the fewest tiles that is within the bound.
KeptSearch search_kept(SearchState& state, SoughtParam& param, const std::vector<int>& kept,
                       double bound);

}  // namespace lacuna::tools
