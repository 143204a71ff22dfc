// Density against error, one dot for each run of a spec.
#pragma once

#include <string>
#include <vector>

#include "tools/picture/picture.hpp"

namespace lacuna::tools {

struct ComparePoint {
  std::string label;
  double density = 0;  ///< visited / visible tiles
  double rel_l1 = 0;   ///< error against dense attention
};

/// Density across, error up on a logarithmic scale; dots of one label have one colour.
Picture compare_picture(const std::string& title, const std::vector<ComparePoint>& points);

}  // namespace lacuna::tools
