// What a run says: a few lines for people, a document for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/run/launch.hpp"

namespace lacuna::tools {

/// How far two outputs are apart.
struct OutputError {
  double rel_l1 = 0;   ///< sum |a - b| / sum |b|
  double max_abs = 0;  ///< max |a - b|; NaN if either is NaN anywhere
};

nlohmann::ordered_json tiles_json(const TileCounts& tiles);

/// Of each branch its name, its tiles and their counts.
nlohmann::ordered_json branches_json(const std::vector<BranchReport>& branches);

/// "3 of 10 tiles", of each branch with its name before.
std::string visited_text(const RunResult& result);

OutputError compare(const Array& sparse, const Array& dense);

std::string print_run(const std::string& spec, const Inputs& inputs, const RunResult& result,
                      const OutputError& error);

void fill_run_json(const std::string& spec, const Inputs& inputs, const RunResult& result,
                   const OutputError& error, nlohmann::ordered_json& document);

}  // namespace lacuna::tools
