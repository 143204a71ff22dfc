// Arrays of other libraries as DLTensors, for the time of one call: nothing is copied.
//
//   the type's DLPack C functions (PyTorch)  ->  the buffer protocol (NumPy)  ->  __dlpack__ (all
//   others)
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "lacuna/dlpack.h"

namespace lacuna_python {

namespace nb = nanobind;

/// What is known of the arrays of one Python type; found once for each type.
struct ArrayType {
  const DLPackExchangeAPI* exchange = nullptr;  ///< null: the library has none
  bool by_buffer = false;                       ///< NumPy
  nb::object library;                           ///< lacuna.arrays.Library
  nb::object finish;  ///< called with stream and device after a launch; None: nothing to do
  nb::object refuse_gradients;  ///< called if an input wants gradients; None: has none
};

const ArrayType& array_type(nb::handle array);

/// The interned name, for attributes that every call reads.
nb::handle interned(const char* name);

class BorrowedTensor {
 public:
  static constexpr int kMostAxes = 8;  ///< a launch says itself how many it expects

  BorrowedTensor() noexcept {}  // NOLINT: the axes stay as they are
  BorrowedTensor(const BorrowedTensor&) = delete;
  BorrowedTensor& operator=(const BorrowedTensor&) = delete;
  ~BorrowedTensor();

  /// `name` is for messages. `stream` is the one on which work is going to use the memory; arrays
  /// that come by __dlpack__ are made ready on it.
  void borrow(nb::handle array, const char* name, void* stream);

  /// [b, n, h, d] becomes [b, h, n, d].
  void swap_heads_and_tokens();

  const DLTensor& tensor() const { return tensor_; }
  bool is_read_only() const { return is_read_only_; }
  const void* data() const {
    return static_cast<const unsigned char*>(tensor_.data) + tensor_.byte_offset;
  }

 private:
  void from_exchange(const DLPackExchangeAPI& exchange, nb::handle array);
  void from_buffer(nb::handle array, const char* name);
  void from_protocol(nb::handle array, const char* name, void* stream);
  void take(const DLTensor& tensor, const char* name);

  DLTensor tensor_{};
  bool is_read_only_ = false;
  bool has_buffer_ = false;
  DLManagedTensor* managed_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
  Py_buffer buffer_;
  std::int64_t shape_[kMostAxes], strides_[kMostAxes];
};

}  // namespace lacuna_python
