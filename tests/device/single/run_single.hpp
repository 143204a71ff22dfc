// What the tests of single kernels share: the argument block, tensors to put into it, and a loop
// over the blocks of a grid.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/cuda.hpp"
// The argument structs are plain C++ once the keywords of device code are gone.
#include "args/predict_args.cuh"

namespace lacuna::device {

/// Of a spec without parameters.
struct SingleArgs {
  AttendArgs attend{};
  PredictArgs predict{};
};

inline const emulation::Schedule kPlainSchedule = {};
inline const emulation::Schedule kOtherSchedules[] = {
    {emulation::Landing::kLate, emulation::WarpOrder::kDescending, 0},
    {emulation::Landing::kEarly, emulation::WarpOrder::kShuffled, 1},
};

/// All blocks of a grid, 256 threads each; "" or the first fault.
inline std::string run_single(const emulation::Kernel& kernel, const SingleArgs& args, int blocks,
                              int smem_bytes,
                              const emulation::Schedule& schedule = kPlainSchedule) {
  for (int block = 0; block < blocks; ++block) {
    std::string fault =
        emulation::run_block({kernel, &args, block, 256, smem_bytes, blocks}, schedule);
    if (!fault.empty()) return fault;
  }
  return "";
}

/// An array with a margin behind it that nothing may write to.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t size, T fill = T{77}) : values_(size + kMargin, fill), fill_(fill) {}
  T* data() { return values_.data(); }
  T& operator[](std::size_t n) { return values_[n]; }
  const T& operator[](std::size_t n) const { return values_[n]; }
  std::size_t size() const { return values_.size() - kMargin; }
  bool is_margin_intact() const {
    return std::all_of(values_.end() - kMargin, values_.end(),
                       [&](const T& value) { return value == fill_; });
  }
  bool operator==(const Guarded&) const = default;

 private:
  static constexpr std::ptrdiff_t kMargin = 64;
  std::vector<T> values_;
  T fill_;
};

/// A tensor of 16-bit elements [n_b, heads, n, d], head-major or token-major, with unused elements
/// between rows (or heads).
class Tensor {
 public:
  Tensor(int n_b, int heads, int n, int d, emulation::Format format, bool is_token_major)
      : format_(format) {
    const int gap = 8;
    stride_n_ = is_token_major ? heads * (d + gap) : d + gap;
    stride_h_ = is_token_major ? d + gap : n * stride_n_ + gap;
    stride_b_ = is_token_major ? n * stride_n_ + gap : heads * stride_h_;
    // Multiples of 16 bytes from an aligned begin; NaN wherever no element lies.
    bits_.assign(static_cast<std::size_t>(n_b) * static_cast<std::size_t>(stride_b_) / 8 + 1,
                 Chunk{});
  }

  TensorArg arg() { return {bits_.data(), stride_b_, stride_h_, stride_n_}; }
  float at(int b, int h, int token, int column) const {
    return emulation::to_float(format_, element(b, h, token, column));
  }
  void set(int b, int h, int token, int column, float value) {
    const std::uint16_t rounded = emulation::round_to(format_, value);
    const std::size_t n = offset(b, h, token, column);
    bits_[n / 8].elements[n % 8] = rounded;
  }
  std::uint16_t element(int b, int h, int token, int column) const {
    const std::size_t n = offset(b, h, token, column);
    return bits_[n / 8].elements[n % 8];
  }

 private:
  struct alignas(16) Chunk {
    std::uint16_t elements[8] = {0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff};
  };
  std::size_t offset(int b, int h, int token, int column) const {
    return static_cast<std::size_t>(b * stride_b_ + h * stride_h_ + token * stride_n_ + column);
  }

  emulation::Format format_;
  long long stride_b_, stride_h_, stride_n_;
  std::vector<Chunk> bits_;
};

/// Normal numbers around a mean of their own for each channel.
inline Tensor random_tensor(int n_b, int heads, int n, int d, emulation::Format format,
                            bool is_token_major, std::uint32_t seed, float factor = 1) {
  Tensor tensor(n_b, heads, n, d, format, is_token_major);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int b = 0; b < n_b; ++b)
    for (int h = 0; h < heads; ++h)
      for (int column = 0; column < d; ++column) {
        const float mean = normal(random);
        for (int token = 0; token < n; ++token)
          tensor.set(b, h, token, column, factor * (mean + normal(random)));
      }
  return tensor;
}

}  // namespace lacuna::device
