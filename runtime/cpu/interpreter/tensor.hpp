// Strided tensors of any element type, as rows of f32: the interpreter's view of memory.
#pragma once

#include <span>

#include "compiler/spec/spec.hpp"
#include "runtime/cpu/host_backend.hpp"

namespace lacuna {

/// Where one head of a tensor begins.
struct HeadIndex {
  std::int64_t b = 0, h = 0;
};

/// Address of an element of a tensor of `T`.
template <class T>
T* element_at(const HostTensor& tensor, HeadIndex head, std::int64_t i, std::int64_t j = 0) {
  return static_cast<T*>(tensor.data) + head.b * tensor.stride[0] + head.h * tensor.stride[1] +
         i * tensor.stride[2] + j * tensor.stride[3];
}

/// Bit j of a row of kept bits.
inline bool is_kept(const std::uint32_t* row, int j) {
  return ((row[j / 32] >> (static_cast<unsigned>(j) % 32U)) & 1U) != 0;
}

/// Tokens [first, first + count) of a head as rows of `d` f32.
void load_rows(const HostTensor& tensor, DType dtype, HeadIndex head, int first, int count, int d,
               float* rows);

/// The same of some tokens, in their order.
void load_rows(const HostTensor& tensor, DType dtype, HeadIndex head, std::span<const int> tokens,
               int d, float* rows);

/// The same, transposed: `d` rows of `stride` f32, of which one for each token is written.
void load_columns(const HostTensor& tensor, DType dtype, HeadIndex head,
                  std::span<const int> tokens, int d, int stride, float* columns);

/// Rounds `d` f32 to the tensor's type and writes them as one token.
void store_row(const HostTensor& tensor, DType dtype, HeadIndex head, int token, int d,
               const float* row);

}  // namespace lacuna
