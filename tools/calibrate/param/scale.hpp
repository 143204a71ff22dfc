// The values of a parameter on a way from its dense end, where nothing is left out, to its sparse
// end. Searches walk shares of this way, so that they need not know what a parameter means.
#pragma once

namespace lacuna::calibrate {

struct Scale {
  double dense = 0, sparse = 1;  ///< the ends of the declared range; may be infinite
  double anchor = 1;             ///< the size of a usual value, where an end is infinite
  bool whole = false;            ///< i32: values are rounded, infinite ends are the largest i32

  /// The value at a share of the way, 0 (exactly the dense end) to 1 (exactly the sparse end).
  /// Between finite ends values are spread evenly; toward an infinite end geometrically, 2^-16 to
  /// 2^16 times the anchor; between two infinite ends so on both sides of zero.
  double at(double share) const;
};

}  // namespace lacuna::calibrate
