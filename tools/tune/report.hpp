// What a search found, for people and for machines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/tune/search.hpp"

namespace lacuna::tools {

/// `values`: the name of what was measured on.
std::string print_findings(const TuneFindings& findings, const std::string& spec,
                           const LaunchShape& shape, const std::string& values, bool color);

nlohmann::ordered_json findings_json(const TuneFindings& findings, const std::string& spec,
                                     const LaunchShape& shape, const std::string& values);

}  // namespace lacuna::tools
