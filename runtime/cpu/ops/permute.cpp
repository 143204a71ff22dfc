#include <algorithm>
#include <cstring>

#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cpu/ops/ops.hpp"

namespace lacuna::predict {
namespace {

std::int32_t place_of(std::span<const std::int32_t> order, int n) {
  return std::clamp(order[static_cast<std::size_t>(n)], 0, static_cast<int>(order.size()) - 1);
}

/// copy(head, n) for every token of x.
template <class Copy>
void for_each_token(const Array& x, const Threads& threads, Copy copy) {
  parallel_for(threads, worker_count(threads, x.head_count()), x.head_count(),
               [&](std::int64_t item, std::size_t) {
                 for (int n = 0; n < x.tokens(); ++n) copy(head_at(x, item), n);
               });
}

std::byte* token_at(const Array& x, HeadIndex head, std::int64_t n) {
  const auto offset =
      head.b * x.tensor.stride[0] + head.h * x.tensor.stride[1] + n * x.tensor.stride[2];
  return static_cast<std::byte*>(x.tensor.data) +
         offset * static_cast<std::int64_t>(size_bytes(x.element));
}

std::size_t token_bytes(const Array& x) {
  return static_cast<std::size_t>(x.width()) * size_bytes(x.element);
}

}  // namespace

Array permute(const Array& x, std::span<const std::int32_t> order, const Threads& threads) {
  Array result = make_array(x.element, x.batches(), x.heads(), x.tokens(), x.width());
  for_each_token(x, threads, [&](HeadIndex head, int n) {
    std::memcpy(token_at(result, head, n), token_at(x, head, place_of(order, n)), token_bytes(x));
  });
  return result;
}

void unpermute(const Array& x, std::span<const std::int32_t> order, const Array& to,
               const Threads& threads) {
  for_each_token(x, threads, [&](HeadIndex head, int n) {
    std::memcpy(token_at(to, head, place_of(order, n)), token_at(x, head, n), token_bytes(x));
  });
}

}  // namespace lacuna::predict
