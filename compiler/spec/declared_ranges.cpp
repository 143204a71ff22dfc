#include "compiler/spec/declared_ranges.hpp"

#include <algorithm>

namespace lacuna {

ReadRanges declared_ranges(const Expr& expr, std::span<const ParamSpec> params) {
  ReadRanges ranges(expr);
  for (std::size_t n = 0; n < std::min(ranges.parameters.size(), params.size()); ++n) {
    ranges.parameters[n] = {std::max(ranges.parameters[n].min, params[n].minimum),
                            std::min(ranges.parameters[n].max, params[n].maximum)};
  }
  return ranges;
}

}  // namespace lacuna
