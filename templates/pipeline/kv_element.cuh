// The type of keys and values in memory: that of the queries, or e4m3.
#pragma once

#include "base/optional_field.cuh"
#include "base/select.cuh"
#include "base/types.cuh"

namespace lacuna {

/// Do keys and values lie in memory as rows of e4m3?
LACUNA_OPTIONAL_FIELD(bool, has_e4m3_rows, kHasE4m3Rows, false)

template <class Config>
using KvElement =
    typename Select<has_e4m3_rows<Config>(), unsigned char, typename Config::Element>::Type;

}  // namespace lacuna
