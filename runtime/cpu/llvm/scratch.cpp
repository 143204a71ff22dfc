#include "runtime/cpu/llvm/scratch.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "runtime/base/whole_tiles.hpp"

namespace lacuna::host {
namespace {

struct ScratchSizes {
  std::size_t q, s, o, rows, keys, k_panels, v_panels;
  explicit ScratchSizes(const Shape& shape) {
    const auto padded = static_cast<std::size_t>(round_up(shape.tile_q, kGroupRows));
    q = padded * static_cast<std::size_t>(round_up(shape.head_dim, kGroupRows));
    s = padded * static_cast<std::size_t>(shape.keys.padded_columns());
    o = padded * static_cast<std::size_t>(shape.values.padded_columns());
    rows = padded;
    keys = static_cast<std::size_t>(shape.keys.padded_columns());
    k_panels = static_cast<std::size_t>(shape.keys.floats());
    v_panels = static_cast<std::size_t>(shape.values.floats());
  }
  std::size_t total() const { return q + s + o + 7 * rows + 3 * keys + k_panels + v_panels; }
};

}  // namespace

void Floats::Free::operator()(void* memory) const { std::free(memory); }

Floats::Floats(std::size_t count) {
  constexpr std::size_t kLine = 64;
  // calloc leaves large blocks to the kernel's zero pages: touched first by the worker that uses
  // them.
  memory_.reset(std::calloc(count * sizeof(float) + kLine, 1));
  if (memory_ == nullptr) throw std::bad_alloc();
  void* address = memory_.get();
  std::size_t space = count * sizeof(float) + kLine;
  aligned_ = static_cast<float*>(std::align(kLine, count * sizeof(float), address, space));
}

Scratch::Scratch(const Shape& shape) : floats_(ScratchSizes(shape).total()) {
  const ScratchSizes sizes(shape);
  float* next = floats_.data();
  const auto take = [&](std::size_t count) { return std::exchange(next, next + count); };
  frame.q = take(sizes.q);
  frame.s = take(sizes.s);
  frame.o = take(sizes.o);
  for (float** array : {&frame.tile_max, &frame.row_max, &frame.row_sum, &frame.row_shift,
                        &frame.pending, &frame.q_scale, &frame.row_bias})
    *array = take(sizes.rows);
  for (float** array : {&frame.k_scale, &frame.column_bias}) *array = take(sizes.keys);
  frame.gathered = reinterpret_cast<std::int32_t*>(take(sizes.keys));
  k_panels = take(sizes.k_panels);
  v_panels = take(sizes.v_panels);
}

}  // namespace lacuna::host
