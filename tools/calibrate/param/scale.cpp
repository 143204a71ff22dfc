#include "tools/calibrate/param/scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lacuna::calibrate {
namespace {

constexpr double kOctaves = 16;

/// The value at a position from the least (0) to the greatest (1), neither of them reached.
double between(double least, double greatest, double anchor, double position) {
  const double side = 2 * position - 1;  // -1 ... 1
  const double size = std::fabs(anchor) > 0 && std::isfinite(anchor) ? std::fabs(anchor) : 1;
  if (std::isfinite(least) && std::isfinite(greatest)) return least + (greatest - least) * position;
  if (!std::isfinite(least) && !std::isfinite(greatest))
    return std::copysign(size * (std::exp2(kOctaves * std::fabs(side)) - 1), side);
  const double finite = std::isfinite(least) ? least : greatest;
  const double usual = std::isfinite(anchor) && anchor != finite ? std::fabs(anchor - finite) : 1;
  if (std::isfinite(least)) return finite + usual * std::exp2(kOctaves * side);
  return finite - usual * std::exp2(-kOctaves * side);
}

double to_whole(double value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return std::nearbyint(
      std::clamp(value, static_cast<double>(Limits::min()), static_cast<double>(Limits::max())));
}

}  // namespace

double Scale::at(double share) const {
  double value = 0;
  if (share <= 0) {
    value = dense;
  } else if (share >= 1) {
    value = sparse;
  } else {
    const bool rises = sparse > dense;
    value = between(std::min(dense, sparse), std::max(dense, sparse), anchor,
                    rises ? share : 1 - share);
  }
  return whole ? to_whole(value) : value;
}

}  // namespace lacuna::calibrate
