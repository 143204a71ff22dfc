// The procedure "kept_tiles": thresholds for each head and query tile. Part of search_params.
#pragma once

#include "tools/calibrate/state.hpp"

namespace lacuna::tools {

/// For each number of kept tiles a table of thresholds, averaged over samples, goes to
/// `result.kept_params`; each group then takes the table with the fewest tiles that is within the
/// bound. false: stopped; the groups that have found none stay dense.
bool search_kept(SearchState& state, SoughtParam& param, const SearchOptions& options, double bound,
                 SearchResult& result);

}  // namespace lacuna::tools
