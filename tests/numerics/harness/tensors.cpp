#include "tests/numerics/harness/tensors.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>

#include "runtime/cuda/device_memory.hpp"
#include "tests/numerics/harness/harness.hpp"

namespace lacuna::numerics {
namespace {

constexpr std::int64_t kPadding = 8;  ///< elements between tokens of a token-major tensor

/// Test plumbing: a failure here is no result, so it ends the run.
void require(bool ok, const Diagnostics& diagnostics) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", render(diagnostics, {"device", ""}).c_str());
  std::abort();
}

DLDataType dl_type(DType dtype) {
  if (dtype == DType::kBF16) return {kDLBfloat, 16, 1};
  return {kDLFloat, static_cast<std::uint8_t>(dtype == DType::kF16 ? 16 : 32), 1};
}

std::uint32_t encode(DType dtype, double x) {
  const auto f = static_cast<float>(x);
  if (dtype == DType::kF16) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(f));
  const auto bits = std::bit_cast<std::uint32_t>(f);  // bf16 values are already rounded
  return dtype == DType::kBF16 ? bits >> 16 : bits;
}

double decode(DType dtype, std::uint32_t bits) {
  if (dtype == DType::kF16)
    return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
  return static_cast<double>(std::bit_cast<float>(dtype == DType::kBF16 ? bits << 16 : bits));
}

std::vector<std::int64_t> contiguous(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t x = shape.size(); x-- > 1;) stride[x - 1] = stride[x] * shape[x];
  return stride;
}

/// `padding`: elements between tokens.
std::vector<std::int64_t> token_major_stride(const std::vector<std::int64_t>& shape,
                                             std::int64_t padding) {
  const std::int64_t token = shape[1] * shape[3] + padding;
  return {shape[2] * token, shape[3], token, 1};
}

std::size_t extent_elements(const Tensor& t) {
  std::size_t last = 1;
  for (std::size_t x = 0; x < t.shape.size(); ++x) {
    if (t.shape[x] == 0) return 0;
    last += static_cast<std::size_t>((t.shape[x] - 1) * t.stride[x]);
  }
  return last;
}

/// Calls f(logical index, element offset) for every element.
template <class F>
void for_each_element(const Tensor& t, F f) {
  std::size_t total = 1;
  for (const std::int64_t x : t.shape) total *= static_cast<std::size_t>(x);
  const auto width = t.shape.empty() ? 1 : static_cast<std::size_t>(t.shape.back());
  const auto step = t.shape.empty() ? 1 : static_cast<std::size_t>(t.stride.back());
  for (std::size_t n = 0; n < total; n += width) {  // a row of the last dimension
    std::size_t rest = n / width, offset = 0;
    for (std::size_t x = t.shape.empty() ? 0 : t.shape.size() - 1; x-- > 0;) {
      const auto size = static_cast<std::size_t>(t.shape[x]);
      offset += rest % size * static_cast<std::size_t>(t.stride[x]);
      rest /= size;
    }
    for (std::size_t c = 0; c < width; ++c) f(n + c, offset + c * step);
  }
}

}  // namespace

struct Tensor::Memory {
  std::vector<std::uint64_t>
      host;  ///< also the staging copy of device memory; 8-byte aligned, see data()
  DeviceBuffer device;
  std::size_t bytes = 0;
  std::uint8_t* data() {  // 16-byte aligned
    auto address = reinterpret_cast<std::uintptr_t>(host.data());
    return reinterpret_cast<std::uint8_t*>((address + 15) / 16 * 16);
  }
};

struct TensorSet::State {
  std::shared_ptr<const Device> device;
  std::unique_ptr<DeviceStream> stream;

  Tensor make(DLDataType type, std::vector<std::int64_t> shape, bool token_major) {
    Tensor t;
    t.shape = std::move(shape);
    t.stride = token_major ? token_major_stride(t.shape, type.bits == 8 ? 2 * kPadding : kPadding)
                           : contiguous(t.shape);
    t.memory = std::make_shared<Tensor::Memory>();
    t.memory->bytes = extent_elements(t) * type.bits / 8U;
    t.memory->host.assign(t.memory->bytes / 8 + 3, ~std::uint64_t{0});
    Diagnostics diagnostics;
    if (device) {
      t.memory->device = DeviceBuffer(device, t.memory->bytes + 16, diagnostics);
      require(static_cast<bool>(t.memory->device), diagnostics);
    }
    DLTensor view{};
    view.data = device ? t.memory->device.data() : t.memory->data();
    view.device = {device ? kDLCUDA : kDLCPU, device ? device->index : 0};
    view.ndim = static_cast<std::int32_t>(t.shape.size());
    view.dtype = type;
    auto owner = std::make_shared<Tensor>(t);  // shape and stride outlive the descriptor
    view.shape = owner->shape.data();
    view.strides = owner->stride.data();
    t.descriptor =
        std::shared_ptr<DLTensor>(new DLTensor(view), [owner](DLTensor* x) { delete x; });
    return t;
  }

  void to_device(Tensor& t) const {
    Diagnostics diagnostics;
    if (device && t.memory->bytes > 0)
      require(t.memory->device.copy_in(t.memory->data(), t.memory->bytes, diagnostics),
              diagnostics);
  }

  void from_device(const Tensor& t) const {
    Diagnostics diagnostics;
    if (device && t.memory->bytes > 0)
      require(t.memory->device.copy_out(t.memory->data(), t.memory->bytes, diagnostics),
              diagnostics);
  }
};

TensorSet::TensorSet(bool is_cuda) : state_(std::make_unique<State>()) {
  if (!is_cuda) return;
  Diagnostics diagnostics;
  const auto driver = load_driver(diagnostics);
  require(driver != nullptr, diagnostics);
  state_->device = open_device(driver, device_index(device_under_test()), diagnostics);
  require(state_->device != nullptr, diagnostics);
  state_->stream = std::make_unique<DeviceStream>(state_->device, diagnostics);
  require(!diagnostics.has_errors(), diagnostics);
}
TensorSet::~TensorSet() = default;

void TensorSet::rewrite(Tensor& t, const std::vector<double>& values, DType dtype) {
  std::uint8_t* data = t.memory->data();
  const std::size_t size = dtype == DType::kF32 ? 4 : 2;
  for_each_element(t, [&](std::size_t n, std::size_t offset) {
    const std::uint32_t bits = encode(dtype, values[n]);
    std::memcpy(data + offset * size, &bits, size);
  });
  state_->to_device(t);
}

void TensorSet::take(Tensor& t, const Tensor& from) {
  if (t.memory->bytes != from.memory->bytes) std::abort();
  std::memcpy(t.memory->data(), from.memory->data(), t.memory->bytes);
  state_->to_device(t);
}

Tensor TensorSet::upload(const std::vector<double>& values, DType dtype,
                         std::vector<std::int64_t> shape, bool token_major) {
  Tensor t = state_->make(dl_type(dtype), std::move(shape), token_major);
  rewrite(t, values, dtype);
  return t;
}

Tensor TensorSet::upload_e4m3(const std::vector<std::uint8_t>& codes,
                              std::vector<std::int64_t> shape, bool token_major) {
  Tensor t = state_->make({kDLFloat8_e4m3fn, 8, 1}, std::move(shape), token_major);
  std::uint8_t* data = t.memory->data();
  for_each_element(t, [&](std::size_t n, std::size_t offset) { data[offset] = codes[n]; });
  state_->to_device(t);
  return t;
}

Tensor TensorSet::upload_i32(const std::vector<std::int32_t>& values,
                             std::vector<std::int64_t> shape) {
  Tensor t = state_->make({kDLInt, 32, 1}, std::move(shape), false);
  std::memcpy(t.memory->data(), values.data(), std::min(t.memory->bytes, values.size() * 4));
  state_->to_device(t);
  return t;
}

Tensor TensorSet::upload_param(const ParamValue& param) {
  if (!param.is_i32) return upload(param.values, DType::kF32, param.shape, false);
  return upload_i32({param.values.begin(), param.values.end()}, param.shape);
}

Tensor TensorSet::poisoned(DType dtype, std::vector<std::int64_t> shape, bool token_major) {
  Tensor t = state_->make(dl_type(dtype), std::move(shape), token_major);
  state_->to_device(t);
  return t;
}

Tensor TensorSet::poisoned_i32(std::vector<std::int64_t> shape) {
  Tensor t = state_->make({kDLInt, 32, 1}, std::move(shape), false);
  state_->to_device(t);
  return t;
}

Tensor TensorSet::poisoned_u8(std::vector<std::int64_t> shape) {
  Tensor t = state_->make({kDLUInt, 8, 1}, std::move(shape), false);
  state_->to_device(t);
  return t;
}

void TensorSet::poison(Tensor& t) {
  std::memset(t.memory->data(), 0xff, t.memory->bytes);
  state_->to_device(t);
}

std::vector<double> TensorSet::download(const Tensor& t, bool* padding_touched) {
  state_->from_device(t);
  const DType dtype = t.descriptor->dtype.code == kDLBfloat ? DType::kBF16
                      : t.descriptor->dtype.bits == 16      ? DType::kF16
                                                            : DType::kF32;
  const std::size_t size = dtype == DType::kF32 ? 4 : 2;
  const std::uint8_t* data = t.memory->data();
  std::vector<double> values;
  values.reserve(t.memory->bytes / size);
  std::vector<std::uint8_t> is_element(padding_touched ? t.memory->bytes : 0);
  for_each_element(t, [&](std::size_t, std::size_t offset) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, data + offset * size, size);
    values.push_back(decode(dtype, bits));
    if (padding_touched) std::memset(is_element.data() + offset * size, 1, size);
  });
  for (std::size_t x = 0; x < is_element.size(); ++x)
    *padding_touched = *padding_touched || (is_element[x] == 0 && data[x] != 0xff);
  return values;
}

std::vector<std::int32_t> TensorSet::download_i32(const Tensor& t) {
  state_->from_device(t);
  std::vector<std::int32_t> values(t.memory->bytes / 4);
  std::memcpy(values.data(), t.memory->data(), t.memory->bytes);
  return values;
}

std::vector<std::uint8_t> TensorSet::download_u8(const Tensor& t) {
  state_->from_device(t);
  return {t.memory->data(), t.memory->data() + t.memory->bytes};
}

void* TensorSet::stream() const { return state_->stream ? state_->stream->handle() : nullptr; }

void TensorSet::synchronise() {
  if (!state_->stream) return;
  // A kernel that never ends is no slow one: the test says which case it was, by its traces.
  constexpr std::chrono::seconds kPatience(100);
  auto waits = std::async(std::launch::async, [&] {
    Diagnostics diagnostics;
    require(state_->stream->synchronize(diagnostics), diagnostics);
  });
  if (waits.wait_for(kPatience) == std::future_status::ready) return;
  ADD_FAILURE() << "what was launched has not ended after " << kPatience.count() << " s";
  std::abort();
}

}  // namespace lacuna::numerics
