// The type of keys and values in memory: that of the queries, or e4m3.
#pragma once

#include "base/optional_field.cuh"
#include "base/types.cuh"

namespace lacuna {

/// Do keys and values lie in memory as rows of e4m3?
LACUNA_OPTIONAL_FIELD(bool, has_e4m3_rows, kHasE4m3Rows, false)

/// No part of a kernel, which the plan would name, but the type of an element by one field of
/// Config. Kernels before attend, which have no such field, ask as well. Only its type is used.
template <class Config>
constexpr auto kv_element() {
  if constexpr (has_e4m3_rows<Config>()) {
    return static_cast<unsigned char>(0);
  } else {
    return typename Config::Element{};
  }
}
template <class Config>
using KvElement = decltype(kv_element<Config>());

}  // namespace lacuna
