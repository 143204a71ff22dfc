// A value of a plan as text.
#pragma once

#include <string>

#include "compiler/target/plan.hpp"

namespace lacuna {

struct PlanValue {
  std::string name;   ///< "tile.q"; a value that a spec may give has the path of its field
  std::string value;  ///< "128"
  Origin origin = Origin::kDefault;
  std::string reason;
  bool is_formula = false;
};

}  // namespace lacuna
