// Tensors of a launch. Part of lacuna.hpp, which includes it.
#ifndef LACUNA_TENSOR_HPP_
#define LACUNA_TENSOR_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

#include "lacuna/dlpack.h"
#include "lacuna/status.hpp"

namespace lacuna {
inline namespace LACUNA_ABI_NAMESPACE {

inline constexpr DLDataType bf16{kDLBfloat, 16, 1};
inline constexpr DLDataType f16{kDLFloat, 16, 1};
inline constexpr DLDataType f32{kDLFloat, 32, 1};
inline constexpr DLDataType e4m3{kDLFloat8_e4m3fn, 8, 1};
inline constexpr DLDataType i32{kDLInt, 32, 1};
inline constexpr DLDataType u8{kDLUInt, 8, 1};

inline DLDevice cpu() { return {kDLCPU, 0}; }
inline DLDevice cuda(int index) { return {kDLCUDA, index}; }

/// A borrowed strided tensor of at most four dimensions; owns its shape, not its memory.
class Tensor {
 public:
  static constexpr int kMaxRank = 4;

  Tensor() = default;  ///< not passed

  /// Strides in elements; none: compact, last dimension contiguous. What a launch only reads may be
  /// const.
  Tensor(const void* data, DLDataType dtype, std::initializer_list<std::int64_t> shape,
         DLDevice device = cpu(), std::initializer_list<std::int64_t> strides = {}) {
    set(data, dtype, device, {shape.begin(), shape.size()}, {strides.begin(), strides.size()});
  }
  Tensor(const void* data, DLDataType dtype, const std::vector<std::int64_t>& shape,
         DLDevice device = cpu(), const std::vector<std::int64_t>& strides = {}) {
    set(data, dtype, device, {shape.data(), shape.size()}, {strides.data(), strides.size()});
  }
#if defined(__cpp_lib_span)
  Tensor(const void* data, DLDataType dtype, std::span<const std::int64_t> shape,
         DLDevice device = cpu(), std::span<const std::int64_t> strides = {}) {
    set(data, dtype, device, {shape.data(), shape.size()}, {strides.data(), strides.size()});
  }
#endif

  /// A copy of a view made elsewhere; the memory stays borrowed.
  Tensor(const DLTensor& other) {  // NOLINT(google-explicit-constructor)
    const auto rank = static_cast<std::size_t>(other.ndim);
    set(other.data, other.dtype, other.device, {other.shape, rank},
        {other.strides, other.strides == nullptr ? 0 : rank});
    tensor_.byte_offset = other.byte_offset;
  }

  bool passed() const { return passed_; }

  /// Valid while this Tensor lives and stays where it is.
  DLTensor view() && = delete;  // it would point into a Tensor that is gone
  DLTensor view() const& {
    DLTensor result = tensor_;
    result.shape = const_cast<std::int64_t*>(shape_);
    result.strides = const_cast<std::int64_t*>(strides_);
    return result;
  }

 private:
  struct Numbers {
    const std::int64_t* data;
    std::size_t size;
  };

  void set(const void* data, DLDataType dtype, DLDevice device, Numbers shape, Numbers strides) {
    tensor_.data = const_cast<void*>(data);
    tensor_.dtype = dtype;
    tensor_.device = device;
    passed_ = true;
    if (shape.size > kMaxRank || (strides.size != 0 && strides.size != shape.size)) {
#if defined(__cpp_exceptions)
      throw std::invalid_argument("lacuna::Tensor: at most 4 dimensions, one stride for each");
#else
      tensor_.ndim = -1;  // which a launch refuses
      return;
#endif
    }
    tensor_.ndim = static_cast<std::int32_t>(shape.size);
    std::uint64_t compact = 1;  // wraps for absurd extents, which a launch refuses
    for (std::size_t d = shape.size; d-- > 0;) {
      shape_[d] = shape.data[d];
      strides_[d] = strides.size == 0 ? static_cast<std::int64_t>(compact) : strides.data[d];
      compact *= static_cast<std::uint64_t>(shape_[d]);
    }
  }

  DLTensor tensor_{};
  std::int64_t shape_[kMaxRank] = {};
  std::int64_t strides_[kMaxRank] = {};
  bool passed_ = false;
};

}  // namespace LACUNA_ABI_NAMESPACE
}  // namespace lacuna
#endif
