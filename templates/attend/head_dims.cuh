// Widths of rows: of queries and keys, and of values and O, for which a Config may have a width of
// its own.
#pragma once

#include "base/optional_field.cuh"

namespace lacuna {

/// Elements of a row of V and O; those of Q and K where a Config does not say.
LACUNA_OPTIONAL_FIELD(int, head_dim_v, kHeadDimV, Config::kHeadDim)

}  // namespace lacuna
