#include "runtime/cpu/ops/array.hpp"

#include <algorithm>
#include <vector>

#include "runtime/base/fp8.hpp"
#include "runtime/base/half.hpp"
#include "runtime/base/threads/parallel_for.hpp"

namespace lacuna::predict {
namespace {

template <class From, class Widen>
void widen_row(const Array& array, HeadIndex head, std::int64_t i, float* to, Widen widen) {
  const From* from = at<From>(array, head, i);
  for (int c = 0; c < array.width(); ++c) to[c] = widen(from[c]);
}

}  // namespace

std::size_t size_bytes(Element element) {
  switch (element) {
    case Element::kBF16:
    case Element::kF16:
      return 2;
    case Element::kI8:
    case Element::kE4M3:
      return 1;
    case Element::kF32:
    case Element::kI32:
    case Element::kU32:
      break;
  }
  return 4;
}

Array view_contiguous(void* data, Element element, int batches, int heads, int tokens, int width) {
  const std::int64_t row = width, head = row * tokens, batch = head * heads;
  return {{data, {batch, head, row, 1}}, element, {batches, heads, tokens, width}, nullptr};
}

Array make_array(Element element, int batches, int heads, int tokens, int width) {
  Array array = view_contiguous(nullptr, element, batches, heads, tokens, width);
  const auto count = static_cast<std::size_t>(array.tensor.stride[0] * batches);
  array.memory = std::make_unique_for_overwrite<std::byte[]>(
      std::max<std::size_t>(1, count * size_bytes(element)));
  array.tensor.data = array.memory.get();
  return array;
}

Array view_array(const HostTensor& tensor, Element element, int batches, int heads, int tokens,
                 int width) {
  return {tensor, element, {batches, heads, tokens, width}, nullptr};
}

void load_row(const Array& array, HeadIndex head, std::int64_t i, float* to) {
  switch (array.element) {
    case Element::kBF16:
      return widen_row<std::uint16_t>(array, head, i, to, bf16_to_f32);
    case Element::kF16:
      return widen_row<std::uint16_t>(array, head, i, to, f16_to_f32);
    case Element::kE4M3:
      return widen_row<std::uint8_t>(array, head, i, to, e4m3_to_f32);
    case Element::kI8:
      return widen_row<std::int8_t>(array, head, i, to,
                                    [](std::int8_t x) { return static_cast<float>(x); });
    case Element::kF32:
      return widen_row<float>(array, head, i, to, [](float x) { return x; });
    case Element::kI32:
    case Element::kU32:
      break;  // indices and bits are no vectors
  }
}

void store_row(const Array& array, HeadIndex head, std::int64_t i, const float* from) {
  for (int c = 0; c < array.width(); ++c) {
    const float x = from[c];
    if (array.element == Element::kF32) *at<float>(array, head, i, c) = x;
    if (array.element == Element::kBF16) *at<std::uint16_t>(array, head, i, c) = f32_to_bf16(x);
    if (array.element == Element::kF16) *at<std::uint16_t>(array, head, i, c) = f32_to_f16(x);
  }
}

void load_centred(const Array& array, const float* mean, HeadIndex head, std::int64_t i,
                  float* to) {
  load_row(array, head, i, to);
  if (!mean) return;
  for (int c = 0; c < array.width(); ++c) to[c] -= mean[c];
}

Array convert(const Array& values, Element element, const Threads& threads) {
  Array result =
      make_array(element, values.batches(), values.heads(), values.tokens(), values.width());
  const std::size_t workers = worker_count(threads, values.head_count());
  std::vector<std::vector<float>> rows(
      workers, std::vector<float>(static_cast<std::size_t>(values.width())));
  parallel_for(threads, workers, values.head_count(), [&](std::int64_t item, std::size_t worker) {
    const HeadIndex head = head_at(values, item);
    std::vector<float>& row = rows[worker];
    for (int n = 0; n < values.tokens(); ++n) {
      load_row(values, head, n, row.data());
      store_row(result, head, n, row.data());
    }
  });
  return result;
}

}  // namespace lacuna::predict
