#include "compiler/spec/declared_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lacuna {

ReadRanges declared_ranges(const Expr& expr, std::span<const ParamSpec> params) {
  ReadRanges ranges(expr);
  for (std::size_t n = 0; n < std::min(ranges.parameters.size(), params.size()); ++n) {
    ranges.parameters[n] = {std::max(ranges.parameters[n].min, params[n].minimum),
                            std::min(ranges.parameters[n].max, params[n].maximum)};
  }
  return ranges;
}

void note_declared_range(ParamSpec& param) {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto integer = [](double end) {
    if (!(end > Limits::min())) return Limits::min();  // or NaN, which a rule refuses later
    return static_cast<std::int32_t>(std::min<double>(end, Limits::max()));
  };
  param.symbol.least = integer(std::ceil(param.minimum));
  param.symbol.most = integer(std::floor(param.maximum));
}

}  // namespace lacuna
