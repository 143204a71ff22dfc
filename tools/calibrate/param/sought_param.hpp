// A parameter under search, and what a launch makes of it. Part of search_params.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/spec/spec.hpp"
#include "tools/calibrate/param/scale.hpp"
#include "tools/inputs/inputs.hpp"

namespace lacuna::tools {

/// A parameter that is looked for.
struct SoughtParam {
  const ParamSpec* spec = nullptr;
  calibrate::Scale scale;
  std::int64_t rows = 1;       ///< of each head: query tiles, else 1
  std::vector<double> values;  ///< [heads * rows]; of a scalar: one

  bool by_tile() const { return spec->symbol.shape.size() == 2; }
};

/// Parameters as a launch on a sample with so many query tiles reads them.
std::vector<ParamInput> launch_params(const std::vector<SoughtParam>& params, std::int64_t heads,
                                      std::int64_t q_tiles);

/// A parameter in its declared shape.
Array param_array(const SoughtParam& param, std::int64_t heads);

}  // namespace lacuna::tools
