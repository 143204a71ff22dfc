// Tensors of the numerics tests: host values <-> memory of the device under test, described by
// DLPack.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lacuna/lacuna.h"
#include "tests/numerics/variants/variants.hpp"

namespace lacuna::numerics {

/// A tensor in host or device memory. Copies share the memory.
struct Tensor {
  struct Memory;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<DLTensor> descriptor;
  std::vector<std::int64_t> shape, stride;
  const DLTensor* view() const { return descriptor.get(); }
};

/// Makes tensors in one kind of memory; owns a stream where there are streams.
class TensorSet {
 public:
  explicit TensorSet(bool is_cuda);
  ~TensorSet();
  TensorSet(const TensorSet&) = delete;
  TensorSet& operator=(const TensorSet&) = delete;

  /// [b, h, n, d]; token_major: [b, n, h, d] in memory with 16 bytes between tokens.
  Tensor upload(const std::vector<double>& values, DType dtype, std::vector<std::int64_t> shape,
                bool token_major);
  /// Codes of e4m3, laid out alike.
  Tensor upload_e4m3(const std::vector<std::uint8_t>& codes, std::vector<std::int64_t> shape,
                     bool token_major);
  Tensor upload_param(const ParamValue& param);
  Tensor upload_i32(const std::vector<std::int32_t>& values, std::vector<std::int64_t> shape);

  /// Outputs filled with 0xff bytes.
  Tensor poisoned(DType dtype, std::vector<std::int64_t> shape, bool token_major);
  Tensor poisoned_i32(std::vector<std::int64_t> shape);
  Tensor poisoned_u8(std::vector<std::int64_t> shape);

  /// Logical order. `padding_touched`: set if bytes outside the elements are no longer 0xff.
  std::vector<double> download(const Tensor& tensor, bool* padding_touched);
  std::vector<std::int32_t> download_i32(const Tensor& tensor);
  std::vector<std::uint8_t> download_u8(const Tensor& tensor);

  void poison(Tensor& tensor);

  /// Overwrites a tensor's values in place (new data for a captured graph).
  void rewrite(Tensor& tensor, const std::vector<double>& values, DType dtype);

  /// The bytes of another tensor of the same size.
  void take(Tensor& tensor, const Tensor& from);

  void* stream() const;
  void synchronise();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lacuna::numerics
