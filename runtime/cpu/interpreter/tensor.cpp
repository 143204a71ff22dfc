#include "runtime/cpu/interpreter/tensor.hpp"

#include "runtime/base/half.hpp"

namespace lacuna {
namespace {

template <float (*kWiden)(std::uint16_t)>
void widen(const std::uint16_t* from, int count, float* to, std::int64_t stride) {
  for (int c = 0; c < count; ++c) to[c * stride] = kWiden(from[c]);
}

/// One token, written to every `stride`-th place.
void load_token(const HostTensor& tensor, DType dtype, HeadIndex head, int token, int d, float* to,
                std::int64_t stride) {
  switch (dtype) {
    case DType::kBF16:
      widen<bf16_to_f32>(element_at<const std::uint16_t>(tensor, head, token), d, to, stride);
      break;
    case DType::kF16:
      widen<f16_to_f32>(element_at<const std::uint16_t>(tensor, head, token), d, to, stride);
      break;
    case DType::kF32: {
      const float* from = element_at<const float>(tensor, head, token);
      for (int c = 0; c < d; ++c) to[c * stride] = from[c];
      break;
    }
  }
}

}  // namespace

void load_rows(const HostTensor& tensor, DType dtype, HeadIndex head, int first, int count, int d,
               float* rows) {
  for (int r = 0; r < count; ++r) {
    load_token(tensor, dtype, head, first + r, d, rows + std::int64_t{r} * d, 1);
  }
}

void load_rows(const HostTensor& tensor, DType dtype, HeadIndex head, std::span<const int> tokens,
               int d, float* rows) {
  for (const int token : tokens) {
    load_token(tensor, dtype, head, token, d, rows, 1);
    rows += d;
  }
}

void load_columns(const HostTensor& tensor, DType dtype, HeadIndex head,
                  std::span<const int> tokens, int d, int stride, float* columns) {
  for (const int token : tokens) {
    load_token(tensor, dtype, head, token, d, columns, stride);
    ++columns;
  }
}

void store_row(const HostTensor& tensor, DType dtype, HeadIndex head, int token, int d,
               const float* row) {
  switch (dtype) {
    case DType::kBF16:
    case DType::kF16: {
      auto* to = element_at<std::uint16_t>(tensor, head, token);
      for (int c = 0; c < d; ++c) {
        to[c] = dtype == DType::kBF16 ? f32_to_bf16(row[c]) : f32_to_f16(row[c]);
      }
      break;
    }
    case DType::kF32: {
      auto* to = element_at<float>(tensor, head, token);
      for (int c = 0; c < d; ++c) to[c] = row[c];
      break;
    }
  }
}

}  // namespace lacuna
