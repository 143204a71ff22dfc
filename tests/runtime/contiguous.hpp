// Tensors of the caller that lie as they are numbered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "runtime/cpu/interpreter/interpreter.hpp"

namespace lacuna {

inline std::size_t product(std::initializer_list<int> extents) {
  std::size_t result = 1;
  for (const int extent : extents) result *= static_cast<std::size_t>(extent);
  return result;
}

/// [n_b, e1, e2, e3].
inline HostTensor contiguous(void* data, std::int64_t e1, std::int64_t e2, std::int64_t e3) {
  return {data, {e1 * e2 * e3, e2 * e3, e3, 1}};
}

}  // namespace lacuna
