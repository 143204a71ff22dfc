// Where a value of a plan comes from, as a word.
#include "compiler/target/plan.hpp"

namespace lacuna {

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kSpec:
      return "spec";
    case Origin::kDefault:
      return "default";
    case Origin::kDerived:
      return "derived";
    case Origin::kTuned:
      return "tuned";
    case Origin::kCaller:
      return "caller";
  }
  return "";
}

}  // namespace lacuna
