// Arrays that the CPU's ops read and make: a strided tensor with its element type, the caller's
// or one that owns its memory.
//
// Shapes are [batch, heads, tokens (or tiles), d], or with three dimensions [batch, heads, tokens]
// and [batch, heads, d]. The last of four dimensions is contiguous.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "compiler/ir/names.hpp"
#include "compiler/ir/program.hpp"
#include "runtime/base/whole_tiles.hpp"
#include "runtime/cpu/host_backend.hpp"
#include "runtime/cpu/interpreter/tensor.hpp"

namespace lacuna::predict {

struct Array {
  HostTensor tensor;
  Element element = Element::kF32;
  std::array<int, 4> extent{0, 0, 0, 1};
  std::unique_ptr<std::byte[]> memory;  ///< null: somebody else's

  int batches() const { return extent[0]; }
  int heads() const { return extent[1]; }
  int tokens() const { return extent[2]; }
  int width() const { return extent[3]; }
  std::int64_t head_count() const { return std::int64_t{extent[0]} * extent[1]; }
};

std::size_t size_bytes(Element element);

/// Contiguous, not initialised.
Array make_array(Element element, int batches, int heads, int tokens, int width = 1);
/// Views of somebody else's memory.
Array view_contiguous(void* data, Element element, int batches, int heads, int tokens,
                      int width = 1);
Array view_array(const HostTensor& tensor, Element element, int batches, int heads, int tokens,
                 int width = 1);

template <class T>
T* at(const Array& array, HeadIndex head, std::int64_t i, std::int64_t j = 0) {
  return element_at<T>(array.tensor, head, i, j);
}

/// Head number `item` of an array, counted over batch entries and heads.
inline HeadIndex head_at(const Array& array, std::int64_t item) {
  return {item / array.heads(), item % array.heads()};
}

/// Bit j of row i of the bits of a select.
inline bool has_bit(const Array& bits, HeadIndex head, int i, int j) {
  return is_kept(at<std::uint32_t>(bits, head, i), j);
}

/// The head of an array that query head `head` of `n_h` reads: its own, or its KV head.
inline HeadIndex head_of(const Array& array, HeadIndex head, int n_h) {
  return {head.b, head.h / (n_h / array.heads())};
}

/// Row `i` of [.., tokens, width], widened to f32.
void load_row(const Array& array, HeadIndex head, std::int64_t i, float* to);

/// The same less `mean` ([.., width] f32) unless that is null.
void load_centred(const Array& array, const float* mean, HeadIndex head, std::int64_t i, float* to);

/// Row `i` of an array of f32, bf16 or f16, rounded from f32.
void store_row(const Array& array, HeadIndex head, std::int64_t i, const float* from);

/// What a mean or a sum over several tokens takes of one: NaN and infinity are the business of
/// their own token, and count as 0 for the others.
inline float finite_or_zero(float x) { return std::isfinite(x) ? x : 0.0F; }

/// `values` as numbers of another type, contiguous: i8 or e4m3 codes in a type that has them all.
Array convert(const Array& values, Element element, const Threads& threads);

}  // namespace lacuna::predict
