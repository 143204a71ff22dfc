#pragma once

#include <cstdint>

namespace lacuna {

/// A value; whoever reads it knows its ExprType.
union Scalar {
  float f32;
  std::int32_t i32;
  bool boolean;
};

}  // namespace lacuna
