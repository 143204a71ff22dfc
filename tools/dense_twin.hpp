// The dense twin of a spec: the same attention without its gate. What a sparse result is measured
// against, in error and in time.
#pragma once

#include <string>
#include <vector>

#include "compiler/spec/spec.hpp"

namespace lacuna::tools {

struct DenseTwin {
  std::string text;                 ///< JSON
  std::vector<std::string> params;  ///< that mask and score still read
};

DenseTwin dense_twin(const Spec& spec);

}  // namespace lacuna::tools
