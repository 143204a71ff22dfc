// Elements of the strided tensors of a launch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cpu/host_backend.hpp"

namespace lacuna::host {

/// Null if the tensor was not passed.
template <class T>
T* element(const HostTensor& tensor, std::int64_t b, std::int64_t h, std::int64_t i,
           std::int64_t j = 0) {
  if (tensor.data == nullptr) return nullptr;
  return static_cast<T*>(tensor.data) + b * tensor.stride[0] + h * tensor.stride[1] +
         i * tensor.stride[2] + j * tensor.stride[3];
}

/// out[0 .. count) = f32 tensor[b, h, first ..]; zeros if the tensor was not passed.
inline void copy_tokens(const HostTensor& tensor, std::int64_t b, std::int64_t h,
                        std::int64_t first, std::int64_t count, float* out) {
  const float* from = element<const float>(tensor, b, h, first);
  for (std::int64_t n = 0; n < count; ++n)
    out[n] = from == nullptr ? 0.0F : from[n * tensor.stride[2]];
}

}  // namespace lacuna::host
