#include "runtime/launch/host_codes.hpp"

#include <cstring>

#include "runtime/base/fp8.hpp"
#include "runtime/base/half.hpp"

namespace lacuna {
namespace {

template <class T, class Round>
void write_rounded(const std::uint8_t* codes, std::int64_t count, float scale, Round round,
                   unsigned char* target) {
  for (std::int64_t n = 0; n < count; ++n, target += sizeof(T)) {
    const T number = round(e4m3_to_f32(codes[n]) * scale);
    std::memcpy(target, &number, sizeof(number));
  }
}

}  // namespace

float scale_at(const BoundTensor& scales, std::int64_t entry, std::int64_t head) {
  if (scales.data == nullptr) return 1;
  return static_cast<const float*>(scales.data)[entry * scales.stride[0] + head * scales.stride[1]];
}

void write_numbers(const std::uint8_t* codes, std::int64_t count, float scale, DType dtype,
                   unsigned char* target) {
  switch (dtype) {
    case DType::kBF16:
      return write_rounded<std::uint16_t>(codes, count, scale, f32_to_bf16, target);
    case DType::kF16:
      return write_rounded<std::uint16_t>(codes, count, scale, f32_to_f16, target);
    case DType::kF32:
      return write_rounded<float>(
          codes, count, scale, [](float x) { return x; }, target);
  }
}

BoundTensor numbers_of_codes(const BoundTensor& codes, const BoundTensor& scales, std::int64_t n_b,
                             std::int64_t n, DType dtype, const Threads& threads,
                             std::vector<unsigned char>& memory) {
  const std::int64_t heads = codes.extent[1], width = codes.extent[3];
  const std::size_t row_bytes = static_cast<std::size_t>(width * number_bytes(dtype));
  memory.resize(static_cast<std::size_t>(n_b * heads * n) * row_bytes + 1);  // never null
  const auto write_head = [&](std::int64_t item, std::size_t) {
    const std::int64_t b = item / heads, h = item % heads;
    const auto* source =
        static_cast<const std::uint8_t*>(codes.data) + b * codes.stride[0] + h * codes.stride[1];
    unsigned char* target = memory.data() + static_cast<std::size_t>(item * n) * row_bytes;
    for (std::int64_t token = 0; token < n; ++token, target += row_bytes)
      write_numbers(source + token * codes.stride[2], width, scale_at(scales, b, h), dtype, target);
  };
  parallel_for(threads, worker_count(threads, n_b * heads), n_b * heads, write_head);
  BoundTensor rows = codes;
  rows.data = memory.data();
  rows.stride[2] = width;
  rows.stride[1] = n * width;
  rows.stride[0] = heads * rows.stride[1];
  return rows;
}

}  // namespace lacuna
